package api

import (
	"context"
	"net/http"

	"headroom/internal/control"
	"headroom/jobs"
)

// Steered is a backfill that somebody steered.
type Steered struct {
	Job     jobs.Job `json:"job"`
	Changed bool     `json:"changed" doc:"False when it was so already."`
}

// Retried is a backfill whose failed messages are tried again.
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
	c := a.control
	for _, verb := range []struct {
		name, summary, description string
		do                         func(context.Context, string) ([]control.Steered, error)
	}{
		{"pause", "Pause a backfill", "Within seconds it makes no more calls to Google. While somebody works on it, its wanted state is paused.", c.Pause},
		{"resume", "Resume a backfill", "Makes a backfill go on that was paused, or blocked until the account acted. Nothing is lost, nothing fetched again.", c.Resume},
		{"cancel", "Cancel a backfill", "Ends it within seconds. What was stored stays.", c.Cancel},
	} {
		add(a, operation{
			ID: verb.name + "-backfill", Method: http.MethodPost, Path: "/backfills/{id}/" + verb.name, Tag: tagBackfills,
			Summary: verb.summary, Description: verb.description + " To ask twice is fine.",
			Errors: []int{http.StatusNotFound, http.StatusConflict}, Example: Steered{exampleJob, true},
		}, func(ctx context.Context, in *BackfillPath) (*Body[Steered], error) {
			if _, err := a.backfill(ctx, in.ID); err != nil {
				return nil, err
			}
			all, err := verb.do(ctx, in.ID)
			if err != nil {
				return nil, err
			}
			return &Body[Steered]{Steered(all[0])}, nil
		})
	}
	type retry struct {
		BackfillPath
		Body *jobs.FailureFilter `required:"false"`
	}
	add(a, operation{
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
			return nil, invalid(err)
		}
		if _, err := a.backfill(ctx, in.ID); err != nil {
			return nil, err
		}
		all, err := c.RetryFailed(ctx, in.ID, f)
		if err != nil {
			return nil, err
		}
		return &Body[Retried]{Retried(all[0])}, nil
	})
	type newSync struct {
		Account string `json:"account" minLength:"1" maxLength:"254" doc:"The account's address."`
	}
	synced := exampleJob
	synced.ID, synced.Kind, synced.State = jobs.SyncID(synced.Account), jobs.MailSync, jobs.Queued
	add(a, operation{
		ID: "start-sync", Method: http.MethodPost, Path: "/syncs", Tag: "syncs",
		Summary: "Ask for a live sync", Description: "Brings what has changed in a mailbox since the last sync, now and not when it is due.",
		Errors:  []int{http.StatusNotFound, http.StatusConflict},
		Request: newSync{"ann@example.com"}, Example: SyncAsked{synced, true},
	}, func(ctx context.Context, in *Body[newSync]) (*Body[SyncAsked], error) {
		asked, err := c.StartSync(ctx, in.Body.Account)
		return &Body[SyncAsked]{SyncAsked(asked)}, err
	})
}
