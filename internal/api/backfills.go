package api

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"headroom/internal/control"
	"headroom/jobs"
)

const tagBackfills = "backfills"

var exampleJob = jobs.Job{
	ID: jobs.BackfillID("ann@example.com"), Kind: jobs.MailBackfill, Account: "ann@example.com", Project: "my-project",
	State: jobs.Waiting, Epoch: 1, Slice: 12,
	Checkpoint: jobs.Checkpoint{HistoryID: 987654, PageToken: "0123", Listed: false},
	Progress:   jobs.Progress{Expected: 40_000, Listed: 12_000, Stored: 9_500, Bytes: 310_000_000},
	WaitingFor: "user-minute", WaitUntil: exampleTime.Add(2 * time.Second),
	CreatedAt: exampleTime.Add(-time.Hour), StartedAt: exampleTime.Add(-time.Hour), UpdatedAt: exampleTime,
}

var exampleFailure = jobs.Failure{
	Job: exampleJob.ID, ID: "18c2f0a1b2c3d4e5", Phase: "fetch", Class: jobs.ClassTransient, Reason: "backendError",
	Attempts: 5, FirstAt: exampleTime.Add(-time.Minute), LastAt: exampleTime, GivenUp: true,
}

// escape makes one segment of a path of an id.
func escape(id string) string { return url.PathEscape(id) }

// BackfillPath names a backfill in a path.
type BackfillPath struct {
	ID string `path:"id" example:"backfill:ann@example.com" maxLength:"512" doc:"The backfill's id."`
}

// A Started backfill.
type Started struct {
	Job     jobs.Job `json:"job"`
	Created bool     `json:"created" doc:"False when the backfill was under way or paused already."`
}

func (a *API) addBackfills() {
	type find struct {
		Paging
		State   string `query:"state" doc:"Only those in this state." enum:"queued,running,waiting,paused,blocked,completed,completed-with-failures,cancelled,failed"`
		Account string `query:"account" maxLength:"254" doc:"Only those of this account."`
	}
	add(a, operation{
		ID: "list-backfills", Method: http.MethodGet, Path: "/backfills", Tag: tagBackfills,
		Summary: "List backfills", Description: "Lists backfills by id, with state and progress.",
		Example: Page[jobs.Job]{Items: []jobs.Job{exampleJob}, Next: exampleJob.ID},
	}, func(ctx context.Context, in *find) (*Body[Page[jobs.Job]], error) {
		f := jobs.JobFilter{Account: in.Account, State: jobs.State(in.State)}
		found, err := a.control.FindBackfills(ctx, f, in.after, in.Limit+1)
		return paged(in.Paging, found, func(j jobs.Job) string { return j.ID }), err
	})
	add(a, operation{
		ID: "get-backfill", Method: http.MethodGet, Path: "/backfills/{id}", Tag: tagBackfills,
		Summary: "Get one backfill", Description: "State, progress, and what it waits for until when.",
		Errors: []int{http.StatusNotFound}, Example: exampleJob,
	}, func(ctx context.Context, in *BackfillPath) (*Body[jobs.Job], error) {
		job, err := a.backfill(ctx, in.ID)
		return &Body[jobs.Job]{job}, err
	})
	a.addStart()
	type failures struct {
		BackfillPath
		Paging
		Class   string `query:"class" doc:"Only those of this class." enum:"quota,concurrency,transient,gone,item,cursor,account,project"`
		Reason  string `query:"reason" maxLength:"4096" doc:"Only those with this reason, exactly as listed."`
		GivenUp bool   `query:"given_up" doc:"Only those that are not tried again by themselves."`
	}
	add(a, operation{
		ID: "list-failures", Method: http.MethodGet, Path: "/backfills/{id}/failures", Tag: tagBackfills,
		Summary: "List what a backfill could not fetch", Description: "Lists by id the messages whose last attempt did not succeed.",
		Errors: []int{http.StatusNotFound}, Example: Page[jobs.Failure]{Items: []jobs.Failure{exampleFailure}},
	}, func(ctx context.Context, in *failures) (*Body[Page[jobs.Failure]], error) {
		f := jobs.FailureFilter{Class: jobs.Class(in.Class), Reason: in.Reason, GivenUp: in.GivenUp}
		if _, err := a.backfill(ctx, in.ID); err != nil {
			return nil, err
		}
		found, err := a.control.Failures(ctx, in.ID, f, in.after, in.Limit+1)
		return paged(in.Paging, found, func(f jobs.Failure) string { return f.ID }), err
	})
}

// backfill finds a backfill by its id, which an address is not.
func (a *API) backfill(ctx context.Context, id string) (jobs.Job, error) {
	if !strings.HasPrefix(id, jobs.BackfillID("")) {
		return jobs.Job{}, control.Errorf(control.NotFound, "no backfill %s; an id begins with %q, and GET %s/backfills lists all", id, jobs.BackfillID(""), Path)
	}
	all, err := a.control.Backfills(ctx, id)
	if err != nil {
		return jobs.Job{}, err
	}
	return all[0], nil
}

func (a *API) addStart() {
	type newBackfill struct {
		Account string      `json:"account" minLength:"1" maxLength:"254" doc:"The account's address."`
		Filter  jobs.Filter `json:"filter,omitzero" doc:"Which part of the mailbox; all of it without spam and trash if left out."`
	}
	op := operation{
		ID: "start-backfill", Method: http.MethodPost, Path: "/backfills", Tag: tagBackfills,
		Summary: "Start the backfill of a mailbox, or of a part of it",
		Description: "There is one backfill for each account and filter. One that is under way or paused is left alone, and the " +
			"answer is 200; one that has ended starts over, and fetches only what is not stored yet.",
		Status: http.StatusCreated, Errors: []int{http.StatusNotFound, http.StatusConflict},
		Request: newBackfill{"ann@example.com", jobs.Filter{After: exampleTime.AddDate(-1, 0, 0), Labels: []string{"INBOX"}, First: 1000}},
		Example: Started{Job: exampleJob, Created: true},
	}
	add(a, op, func(ctx context.Context, in *Body[newBackfill]) (*located[Started], error) {
		if err := in.Body.Filter.Validate(); err != nil {
			return nil, invalid(err)
		}
		started, err := a.control.StartBackfill(ctx, in.Body.Account, in.Body.Filter)
		status := http.StatusOK
		if started.Created {
			status = http.StatusCreated
		}
		return at(status, Started(started), "backfills", started.Job.ID), err
	})
	a.also(op, http.StatusOK, "The backfill was under way or paused already.", Started{Job: exampleJob})
}
