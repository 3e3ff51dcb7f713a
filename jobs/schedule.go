package jobs

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Schedule makes the same thing happen for every account, again and again.
type Schedule string

// The schedules.
const (
	ScheduleMail      Schedule = "mail-sync"      // asks for the live sync of the mailbox
	ScheduleCalendar  Schedule = "calendar-sync"  // asks for the sync of the calendars
	ScheduleWatches   Schedule = "watch-renewal"  // has Google's promises to push renewed
	ScheduleReconcile Schedule = "reconciliation" // has the mailbox and the calendars read as a whole
)

// Schedules lists all schedules.
var Schedules = []Schedule{ScheduleMail, ScheduleCalendar, ScheduleWatches, ScheduleReconcile}

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
	Account string `json:"account,omitempty"`
	Tenant  string `json:"tenant,omitempty"`
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

// A Slot is what the store keeps of a schedule and an account. A slot is a moment
// that the schedule's specification names; a run comes some time after it, as the
// account's place in the spread says.
type Slot struct {
	Schedule Schedule   `json:"schedule"`
	Account  string     `json:"account"`
	Spec     string     `json:"spec"` // that the slot was found by
	Slot     time.Time  `json:"slot"` // the last one that has run, or that passed before the account was seen
	RanAt    time.Time  `json:"ran_at,omitzero"`
	Result   SlotResult `json:"result,omitempty"`
	Runs     int64      `json:"runs"`
	CatchUps int64      `json:"catch_ups"` // of the runs
	Missed   int64      `json:"missed"`    // slots that never had a run
}

// SlotResult is what a run of a schedule came to.
type SlotResult string

// The results of a run.
const (
	SlotAsked   SlotResult = "asked"   // the work was asked for, or is under way and follows once more
	SlotNothing SlotResult = "nothing" // there is nothing of the account to be worked on, or it is paused or blocked
)

// A SlotClaim is one scheduler's wish to run a slot.
type SlotClaim struct {
	Schedule Schedule
	Account  string
	Spec     string
	After    time.Time // the row's slot; another one means that somebody else was faster
	Slot     time.Time
	At       time.Time // when it runs
	Missed   int64     // slots between After and Slot
	CatchUp  bool      // it runs late, and stands for all that were missed
}

// ID names the run, everywhere and for ever.
func (c SlotClaim) ID() string {
	return fmt.Sprintf("%s:%s:%d", c.Schedule, c.Account, c.Slot.Unix())
}

// A ClaimedSlot is the answer to a [SlotClaim].
type ClaimedSlot struct {
	Won    bool
	Result SlotResult // of the run, if it was won
	Slot   time.Time  // of the row now; zero: there is none
}

// A SchedulePause keeps schedules from running. An empty field stands for all.
type SchedulePause struct {
	Schedule  Schedule  `json:"schedule,omitempty"`
	Tenant    string    `json:"tenant,omitempty"`
	Account   string    `json:"account,omitempty"`
	PausedAt  time.Time `json:"paused_at"`
	ResumedAt time.Time `json:"resumed_at,omitzero"` // zero: it still holds
}

// Covers reports whether a pause is one of a schedule and an account.
func (p SchedulePause) Covers(s Schedule, tenant, account string) bool {
	return (p.Schedule == "" || p.Schedule == s) && (p.Tenant == "" || p.Tenant == tenant) && (p.Account == "" || p.Account == account)
}

// A ScheduleRevision rises with every change of what [ScheduleSnapshot] holds, apart from the
// slots.
type ScheduleRevision struct {
	Accounts int64 // an account was added, or assigned to another tenant
	Pauses   int64 // something was paused or resumed
}

// A ScheduleSnapshot is all that schedules run for.
type ScheduleSnapshot struct {
	Revision ScheduleRevision
	Accounts []Account
	Slots    []Slot
	Pauses   []SchedulePause
}
