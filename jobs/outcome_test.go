package jobs_test

import (
	"testing"
	"time"

	"headroom/jobs"
)

func TestTheOutcomeOfAnAccountsWatches(t *testing.T) {
	later := noon.Add(time.Hour)
	for _, c := range []struct {
		watches jobs.AccountWatches
		want    jobs.WorkState
	}{
		{jobs.AccountWatches{RenewAt: later}, jobs.WorkRenewed},
		{jobs.AccountWatches{RenewAt: noon}, jobs.WorkDue},
		{jobs.AccountWatches{RenewAt: noon, Lapsed: 1}, jobs.WorkLapsed},
		{jobs.AccountWatches{RenewAt: later, Lapsed: 1, Failures: 2}, jobs.WorkFailing},
	} {
		if got := c.watches.Outcome(noon).State; got != c.want {
			t.Errorf("%+v: %s, want %s", c.watches, got, c.want)
		}
	}
}

func TestTheOutcomeOfALastRun(t *testing.T) {
	ended := func(state jobs.State, at time.Time) jobs.ScheduleOutcome {
		return jobs.OutcomeOfSync(jobs.Job{Kind: jobs.MailSync, State: state, FinishedAt: at, LastError: "e"})
	}
	earlier := noon.Add(-time.Hour)
	for _, c := range []struct {
		name     string
		schedule jobs.Schedule
		work     []jobs.ScheduleOutcome
		want     jobs.WorkState
		problem  string
	}{
		{"no work yet", jobs.ScheduleMail, nil, jobs.WorkAsked, ""},
		{"completed since", jobs.ScheduleMail, []jobs.ScheduleOutcome{ended(jobs.Completed, noon)}, "completed", ""},
		{"failed since", jobs.ScheduleMail, []jobs.ScheduleOutcome{ended(jobs.Failed, noon)}, "failed", "e"},
		{"failed before", jobs.ScheduleMail, []jobs.ScheduleOutcome{ended(jobs.Failed, earlier)}, jobs.WorkAsked, ""},
		{"one runs, one completed", jobs.ScheduleReconcile,
			[]jobs.ScheduleOutcome{ended(jobs.Completed, noon), ended(jobs.Running, time.Time{})}, "running", "e"},
		{"watches renewed before", jobs.ScheduleWatches, []jobs.ScheduleOutcome{{State: jobs.WorkRenewed, Ended: earlier}}, jobs.WorkRenewed, ""},
	} {
		if got := jobs.LastRun(c.schedule, c.work, noon); got.State != c.want || got.Error != c.problem {
			t.Errorf("%s: %s, %q, want %s, %q", c.name, got.State, got.Error, c.want, c.problem)
		}
	}
}
