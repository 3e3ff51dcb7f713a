package jobs

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// ParseSchedule finds a schedule by its name.
func ParseSchedule(name string) (Schedule, error) {
	if s := Schedule(name); slices.Contains(Schedules, s) {
		return s, nil
	}
	var names []string
	for _, s := range Schedules {
		names = append(names, string(s))
	}
	return "", fmt.Errorf("no schedule %q; there are %s", name, strings.Join(names, ", "))
}

// A ScheduleScope says for whom something is done to a schedule: an account, a
// tenant's accounts, or all.
type ScheduleScope struct {
	Account string `json:"account,omitempty" maxLength:"254" doc:"Only this account."`
	Tenant  string `json:"tenant,omitempty" maxLength:"128" doc:"Only the accounts of this tenant."`
}

// String says whose.
func (s ScheduleScope) String() string {
	switch {
	case s.Account != "":
		return s.Account
	case s.Tenant != "":
		return "tenant " + s.Tenant
	}
	return "all accounts"
}

// A ScheduleLine is a schedule as it holds for the accounts that have their
// settings in common.
type ScheduleLine struct {
	Schedule   Schedule       `json:"schedule"`
	SettingsOf string         `json:"settings_of" doc:"Whose settings hold: defaults, all, tenant NAME or account ADDRESS."`
	Spec       string         `json:"spec"`
	Zone       string         `json:"zone"`
	Accounts   int            `json:"accounts"`
	Next       time.Time      `json:"next,omitzero" doc:"When the next run of any of them is due."`
	LastSlot   time.Time      `json:"last_slot,omitzero" doc:"The newest slot that has run."`
	LastRun    time.Time      `json:"last_run,omitzero" doc:"When the newest run began."`
	Results    map[string]int `json:"results" doc:"How many accounts' last run came to what: the state of the work that it asked for, nothing where there was none to do, never where none was."`
	LastError  string         `json:"last_error,omitempty" doc:"Of one of the accounts whose work failed or is blocked."`
	LagSeconds float64        `json:"lag_seconds" doc:"For how long the run has been due that has waited longest; 0 when none waits."`
	Runs       int64          `json:"runs"`
	CatchUps   int64          `json:"catch_ups" doc:"Of the runs, those that made up for missed ones."`
	Missed     int64          `json:"missed" doc:"Slots that never had a run."`
	Paused     int            `json:"paused" doc:"How many of the accounts it is paused for."`
	PausedBy   []string       `json:"paused_by,omitempty" doc:"What pauses it: settings, all accounts, tenant NAME or an account."`
}

// A ScheduledRun is a run that is to come.
type ScheduledRun struct {
	Schedule Schedule  `json:"schedule"`
	Account  string    `json:"account,omitempty"`
	Slot     time.Time `json:"slot" doc:"The moment that the specification names, in its zone."`
	Due      time.Time `json:"due" doc:"When the account's run is due; of no account in particular, the first's."`
	Spread   float64   `json:"spread_seconds" doc:"Over how long after the slot the accounts' runs are spread."`
	Paused   bool      `json:"paused" doc:"It does not run unless it is resumed before."`
}

// A ScheduleRun is what came of running a schedule now.
type ScheduleRun struct {
	Schedule Schedule `json:"schedule"`
	ScheduleScope
	Accounts int `json:"accounts" doc:"For how many accounts it was run."`
	Asked    int `json:"asked" doc:"For how many of them there was anything to ask for. It begins within seconds or, where it is under way, once more after that."`
}

// A SchedulePausing is what came of pausing or resuming a schedule.
type SchedulePausing struct {
	Schedule Schedule `json:"schedule"`
	ScheduleScope
	Changed bool     `json:"changed" doc:"False when it was so already."`
	Paused  bool     `json:"paused"`
	By      []string `json:"paused_by,omitempty" doc:"Whatever else pauses it for any of these accounts."`
}

// A ScheduleOutcome is how the work stands that a schedule asks for.
type ScheduleOutcome struct {
	Schedule Schedule
	Account  string
	State    string
	Live     bool
	Ended    time.Time // zero: it has not
	Error    string
}
