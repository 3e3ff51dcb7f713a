package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"headroom/internal/store/sqlite"
	"headroom/jobs"
	"headroom/scheduler"
)

// A ScheduleLine is a schedule as it holds for the accounts that have their
// settings in common.
type ScheduleLine struct {
	Schedule   jobs.Schedule  `json:"schedule"`
	SettingsOf string         `json:"settings_of"` // defaults, all, tenant NAME or account ADDRESS
	Spec       string         `json:"spec"`
	Zone       string         `json:"zone"`
	Accounts   int            `json:"accounts"`
	Next       time.Time      `json:"next,omitzero"`      // when the next run of any of them is due
	LastSlot   time.Time      `json:"last_slot,omitzero"` // the newest slot that has run
	LastRun    time.Time      `json:"last_run,omitzero"`
	Results    map[string]int `json:"results"` // accounts by the state of the work of their last run
	LastError  string         `json:"last_error,omitempty"`
	LagSeconds float64        `json:"lag_seconds"` // how long the oldest due run has been due
	Runs       int64          `json:"runs"`
	CatchUps   int64          `json:"catch_ups"`
	Missed     int64          `json:"missed"` // slots that never had a run
	Paused     int            `json:"paused"`
	PausedBy   []string       `json:"paused_by,omitempty"`
}

// A ScheduledRun is a run that is to come.
type ScheduledRun struct {
	Schedule jobs.Schedule `json:"schedule"`
	Account  string        `json:"account,omitempty"`
	Slot     time.Time     `json:"slot"`
	Due      time.Time     `json:"due"`
	Spread   float64       `json:"spread_seconds"`
	Paused   bool          `json:"paused"`
}

// A ScheduleRun is what came of running a schedule now.
type ScheduleRun struct {
	Schedule jobs.Schedule `json:"schedule"`
	jobs.ScheduleScope
	Accounts int `json:"accounts"`
	Asked    int `json:"asked"`
}

// A SchedulePausing is what came of pausing or resuming a schedule.
type SchedulePausing struct {
	Schedule jobs.Schedule `json:"schedule"`
	jobs.ScheduleScope
	Changed bool     `json:"changed"`
	Paused  bool     `json:"paused"`
	By      []string `json:"paused_by,omitempty"`
}

// scoped returns the store and what schedules run for, narrowed to the accounts of the scope, whose
// address it writes as the store does. The error of an unknown account or tenant is a
// [jobs.ErrNotFound] with the next step.
func (c *Control) scoped(ctx context.Context, scope *jobs.ScheduleScope) (*sqlite.Store, jobs.ScheduleSnapshot, error) {
	if scope.Account != "" && scope.Tenant != "" {
		return nil, jobs.ScheduleSnapshot{}, refusef("name an account or a tenant, not both")
	}
	if scope.Account != "" {
		account, err := c.Account(ctx, scope.Account)
		if err != nil {
			return nil, jobs.ScheduleSnapshot{}, err
		}
		scope.Account = account.Email
	}
	s, err := c.store(ctx)
	if err != nil {
		return nil, jobs.ScheduleSnapshot{}, err
	}
	snapshot, err := s.ScheduleSnapshot(ctx)
	if err != nil {
		return nil, jobs.ScheduleSnapshot{}, err
	}
	tenants := map[string]bool{}
	snapshot.Accounts = slices.DeleteFunc(snapshot.Accounts, func(a jobs.Account) bool {
		tenants[a.Tenant] = true
		return scope.Account != "" && a.Email != scope.Account || scope.Tenant != "" && a.Tenant != scope.Tenant
	})
	if scope.Tenant != "" && len(snapshot.Accounts) == 0 {
		return nil, jobs.ScheduleSnapshot{}, missing("there are "+someOf(slices.Sorted(maps.Keys(tenants))), "unknown tenant %s, no account belongs to it", scope.Tenant)
	}
	return s, snapshot, nil
}

// someOf lists names, but not endlessly.
func someOf(names []string) string {
	const most = 10
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// NextRuns lists the next n runs, by when they are due: of a schedule as it holds
// for all or for an account, or of all schedules of an account.
func (c *Control) NextRuns(ctx context.Context, schedule jobs.Schedule, account string, n int) ([]ScheduledRun, error) {
	scope := jobs.ScheduleScope{Account: account}
	_, snapshot, err := c.scoped(ctx, &scope)
	if err != nil {
		return nil, err
	}
	of := jobs.Schedules
	if schedule != "" {
		of = []jobs.Schedule{schedule}
	}
	tenant := ""
	if scope.Account != "" {
		tenant = snapshot.Accounts[0].Tenant
	}
	all := []ScheduledRun{}
	for _, one := range of {
		timing := TimingFunc(c.cfg)(one, tenant, scope.Account)
		if timing.Spec == "" {
			continue
		}
		coming, err := scheduler.NextRuns(timing, one, scope.Account, time.Now(), n)
		if err != nil {
			return nil, err
		}
		paused := timing.Paused || slices.ContainsFunc(snapshot.Pauses, func(p jobs.SchedulePause) bool {
			return p.ResumedAt.IsZero() && p.Covers(one, tenant, scope.Account)
		})
		for _, m := range coming {
			all = append(all, ScheduledRun{Schedule: one, Account: scope.Account, Slot: m.Slot, Due: m.Due, Spread: m.Spread.Seconds(), Paused: paused})
		}
	}
	slices.SortStableFunc(all, func(a, b ScheduledRun) int { return a.Due.Compare(b.Due) })
	return all[:min(n, len(all))], nil
}

// nothingToRun are the reasons why a schedule has nothing to ask for of an account.
var nothingToRun = map[jobs.Schedule]string{
	jobs.ScheduleMail:      "its mailbox is not known before the first backfill of all of it (headroom backfill start %[1]s), or its live sync is paused, blocked or cancelled (headroom sync %[1]s)",
	jobs.ScheduleCalendar:  "its calendars were never synced, or their sync is paused, blocked or cancelled (headroom calendar sync %[1]s)",
	jobs.ScheduleWatches:   "Google is asked to push nothing of it (push in the settings), or the syncs that renew what it promised are paused, blocked or cancelled",
	jobs.ScheduleReconcile: "neither its mailbox nor its calendars were synced before, or their syncs are paused, blocked or cancelled (headroom sync %[1]s)",
}

// RunSchedule asks for the work of a schedule now, paused or not, and leaves its
// slots as they are. If there is nothing to ask for of the account, the error
// gives the reason.
func (c *Control) RunSchedule(ctx context.Context, schedule jobs.Schedule, scope jobs.ScheduleScope) (ScheduleRun, error) {
	s, snapshot, err := c.scoped(ctx, &scope)
	if err != nil {
		return ScheduleRun{}, err
	}
	var accounts []string
	for _, a := range snapshot.Accounts {
		accounts = append(accounts, a.Email)
	}
	ran := ScheduleRun{Schedule: schedule, ScheduleScope: scope, Accounts: len(accounts)}
	if ran.Asked, err = s.RunSchedule(ctx, schedule, accounts, time.Now()); err != nil {
		return ScheduleRun{}, err
	}
	if scope.Account != "" && ran.Asked == 0 {
		return ScheduleRun{}, Errorf(Conflict, "nothing to ask for of %[1]s: "+nothingToRun[schedule], scope.Account)
	}
	return ran, nil
}

// PauseSchedule keeps a schedule from running for the accounts of a scope.
func (c *Control) PauseSchedule(ctx context.Context, schedule jobs.Schedule, scope jobs.ScheduleScope) (SchedulePausing, error) {
	return c.steerSchedule(ctx, schedule, scope, true)
}

// ResumeSchedule ends the pause of the same scope. What else pauses the schedule
// for any of its accounts stays, and is named.
func (c *Control) ResumeSchedule(ctx context.Context, schedule jobs.Schedule, scope jobs.ScheduleScope) (SchedulePausing, error) {
	return c.steerSchedule(ctx, schedule, scope, false)
}

func (c *Control) steerSchedule(ctx context.Context, schedule jobs.Schedule, scope jobs.ScheduleScope, pause bool) (SchedulePausing, error) {
	s, snapshot, err := c.scoped(ctx, &scope)
	if err != nil {
		return SchedulePausing{}, err
	}
	p := jobs.SchedulePause{Schedule: schedule, Tenant: scope.Tenant, Account: scope.Account}
	was := slices.ContainsFunc(snapshot.Pauses, func(o jobs.SchedulePause) bool {
		return o.ResumedAt.IsZero() && o.Schedule == p.Schedule && o.Tenant == p.Tenant && o.Account == p.Account
	})
	done := SchedulePausing{Schedule: schedule, ScheduleScope: scope, Changed: was != pause}
	switch {
	case pause:
		err = s.PauseSchedules(ctx, p)
	case was:
		err = s.ResumeSchedules(ctx, p)
	}
	if err != nil {
		return SchedulePausing{}, err
	}
	done.By, err = c.otherPauses(ctx, schedule, scope)
	done.Paused = pause || len(done.By) > 0
	return done, err
}

// otherPauses names what pauses a schedule for accounts of a scope, besides the
// scope's own pause.
func (c *Control) otherPauses(ctx context.Context, schedule jobs.Schedule, scope jobs.ScheduleScope) ([]string, error) {
	lines, err := c.Schedules(ctx, scope)
	if err != nil {
		return nil, err
	}
	var by []string
	for _, line := range lines {
		if line.Schedule == schedule {
			by = append(by, line.PausedBy...)
		}
	}
	slices.Sort(by)
	own := scope.String()
	return slices.DeleteFunc(slices.Compact(by), func(name string) bool { return name == own }), nil
}
