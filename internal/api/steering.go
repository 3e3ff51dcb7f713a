package api

import (
	"context"
	"net/http"

	"headroom/jobs"
)

// Steered is a backfill that somebody steered.
type Steered struct {
	Job     jobs.Job `json:"job"`
	Changed bool     `json:"changed" doc:"False when it was so already."`
}

// Retried is a backfill of which failed messages are tried again.
type Retried struct {
	Job     jobs.Job `json:"job"`
	Retried int      `json:"retried" doc:"How many messages are tried again."`
}

// SyncAsked is a live sync that was asked for.
type SyncAsked struct {
	Job     jobs.Job `json:"job"`
	Started bool     `json:"started" doc:"False when one was under way; another follows it."`
}

func (a *API) addSteering() {
	b := a.opts.Backend
	for _, verb := range []struct {
		name, summary, description string
		do                         func(context.Context, string) (jobs.Job, bool, error)
	}{
		{"pause", "Pause a backfill", "Within seconds it makes no more calls to Google. While somebody works on it, its wanted state is paused.", b.Pause},
		{"resume", "Resume a backfill", "Makes a backfill go on that was paused, or blocked until the account acted. Nothing is lost, nothing fetched again.", b.Resume},
		{"cancel", "Cancel a backfill", "Ends it within seconds. What was stored stays.", b.Cancel},
	} {
		Add(a, Operation{
			ID: verb.name + "-backfill", Method: http.MethodPost, Path: "/backfills/{id}/" + verb.name, Tag: tagBackfills,
			Summary: verb.summary, Description: verb.description + " To ask twice is fine.",
			Errors: []int{http.StatusNotFound, http.StatusConflict}, Example: Steered{exampleJob, true},
		}, func(ctx context.Context, in *BackfillPath) (*Body[Steered], error) {
			job, changed, err := verb.do(ctx, in.ID)
			return &Body[Steered]{Steered{job, changed}}, err
		})
	}
	type retry struct {
		BackfillPath
		Body *jobs.FailureFilter `required:"false"`
	}
	Add(a, Operation{
		ID: "retry-failed", Method: http.MethodPost, Path: "/backfills/{id}/retry-failed", Tag: tagBackfills,
		Summary: "Try failed messages again", Description: "Tries those again that were given up and that the filter chooses; all without a filter.",
		Errors:  []int{http.StatusNotFound, http.StatusConflict},
		Request: jobs.FailureFilter{Class: jobs.ClassTransient}, Example: Retried{exampleJob, 5},
	}, func(ctx context.Context, in *retry) (*Body[Retried], error) {
		var f jobs.FailureFilter
		if in.Body != nil {
			f = *in.Body
		}
		if err := f.Validate(); err != nil {
			return nil, Invalid(err)
		}
		job, n, err := b.RetryFailed(ctx, in.ID, f)
		return &Body[Retried]{Retried{job, n}}, err
	})
	type newSync struct {
		Account string `json:"account" minLength:"1" maxLength:"254" doc:"The account's address."`
	}
	synced := exampleJob
	synced.ID, synced.Kind, synced.State = jobs.SyncID(synced.Account), jobs.MailSync, jobs.Queued
	Add(a, Operation{
		ID: "start-sync", Method: http.MethodPost, Path: "/syncs", Tag: "syncs",
		Summary: "Ask for a live sync", Description: "Brings what has changed in a mailbox since the last sync, now and not when it is due.",
		Errors:  []int{http.StatusNotFound, http.StatusConflict},
		Request: newSync{"ann@example.com"}, Example: SyncAsked{synced, true},
	}, func(ctx context.Context, in *Body[newSync]) (*Body[SyncAsked], error) {
		job, started, err := b.Sync(ctx, in.Body.Account)
		return &Body[SyncAsked]{SyncAsked{job, started}}, err
	})
}
