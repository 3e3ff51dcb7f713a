package jobs

import (
	"slices"
	"time"
)

// WorkState says how the work stands that a schedule asks for: the [State] of a
// sync's job, [WorkAsked], or one of those of an account's watches.
type WorkState string

// The states of work that are no job's.
const (
	WorkAsked             = WorkState(SlotAsked) // it was asked for, and has yet to begin
	WorkRenewed WorkState = "renewed"            // all watches are in force
	WorkDue     WorkState = "due"                // a watch is to be renewed
	WorkLapsed  WorkState = "lapsed"             // a watch ended before it was renewed
	WorkFailing WorkState = "failing"            // a watch cannot be renewed
)

// bestFirst orders the states of work.
var bestFirst = []WorkState{
	WorkState(Completed), WorkRenewed, WorkState(CompletedWithFailures), WorkDue, WorkAsked, WorkState(Queued), WorkState(Running),
	WorkState(Waiting), WorkState(Paused), WorkState(Cancelled), WorkState(Blocked), WorkLapsed, WorkFailing, WorkState(Failed),
}

// A ScheduleOutcome is how the work of a schedule stands for an account.
type ScheduleOutcome struct {
	Schedule Schedule
	Account  string
	State    WorkState
	Live     bool
	Ended    time.Time // zero: it has not
	Error    string
}

// OutcomeOfSync is the outcome of the schedule that asks for a sync.
func OutcomeOfSync(j Job) ScheduleOutcome {
	schedule := ScheduleMail
	if j.Kind == CalendarSync {
		schedule = ScheduleCalendar
	}
	return ScheduleOutcome{Schedule: schedule, Account: j.Account, State: WorkState(j.State), Live: j.State.Live(), Ended: j.FinishedAt, Error: j.LastError}
}

// AccountWatches is what is known of all watches of an account together.
type AccountWatches struct {
	Account   string
	Failures  int       // most in a row, of any
	Lapsed    int       // how many have lapsed
	RenewAt   time.Time // when the first is to be renewed
	RenewedAt time.Time // when the last was
	LastError string    // of any
}

// Outcome is the outcome of [ScheduleWatches]: that of the worst of the watches.
func (w AccountWatches) Outcome(now time.Time) ScheduleOutcome {
	o := ScheduleOutcome{Schedule: ScheduleWatches, Account: w.Account, State: WorkRenewed, Ended: w.RenewedAt, Error: w.LastError}
	switch {
	case w.Failures > 0:
		o.State = WorkFailing
	case w.Lapsed > 0:
		o.State = WorkLapsed
	case !now.Before(w.RenewAt):
		o.State = WorkDue
	}
	return o
}

// LastRun is the outcome of a schedule's last run, at ranAt: the worst of what the
// work it asked for came to. Work that stands since an earlier run has yet to begin.
func LastRun(schedule Schedule, work []ScheduleOutcome, ranAt time.Time) (worst ScheduleOutcome) {
	rank := -1
	for _, o := range work {
		if !o.Live && o.Ended.Before(ranAt) && schedule != ScheduleWatches {
			o.State, o.Error = WorkAsked, ""
		}
		if o.State == WorkState(Completed) {
			o.Error = ""
		}
		if r := slices.Index(bestFirst, o.State); r > rank {
			rank, worst = r, o
		}
	}
	if rank < 0 {
		worst.State = WorkAsked
	}
	return worst
}
