package app

import (
	"context"
	"errors"
	"slices"

	"headroom/config"
	"headroom/jobs"
)

// ResumeAll makes all backfills go on that are chosen and paused, or blocked until
// their account acted.
func (o Operator) ResumeAll(ctx context.Context, chosen jobs.Selection) ([]Steered, error) {
	all, err := o.selected(ctx, chosen, func(j jobs.Job) bool {
		return j.State == jobs.Paused || j.State == jobs.Blocked || j.Wanted == jobs.Paused
	})
	var done []Steered
	for _, j := range all {
		if err != nil {
			break
		}
		var job jobs.Job
		var changed bool
		if job, changed, err = o.Store.Resume(ctx, j.ID); goneOn(err) {
			err = nil
		} else if err == nil {
			o.put(ctx, job)
			done = append(done, Steered{Job: job, Changed: changed})
		}
	}
	return done, err
}

// RetryAll is [Operator.RetryFailed] for all backfills that are chosen and have
// given something up.
func (o Operator) RetryAll(ctx context.Context, chosen jobs.Selection, f jobs.FailureFilter) ([]Retried, error) {
	all, err := o.selected(ctx, chosen, func(j jobs.Job) bool {
		return j.Progress.Failed > 0 && j.State != jobs.Cancelled && j.State != jobs.Failed && j.State != jobs.Blocked
	})
	var done []Retried
	for _, j := range all {
		if err != nil {
			break
		}
		var job jobs.Job
		var n int
		if job, n, err = o.Store.RetryFailed(ctx, j.ID, f); goneOn(err) {
			err = nil
		} else if err == nil {
			o.put(ctx, job)
			done = append(done, Retried{Job: job, Retried: n})
		}
	}
	return done, err
}

// StartAll starts the backfills of all chosen accounts, of the part that the filter
// lets through: those in the state that is chosen or, where none is, those that never
// were, failed or were cancelled. An account that cannot have one, since its project is
// in the settings no more, keeps no other from its own; the error names it.
func (o Operator) StartAll(ctx context.Context, cfg config.Config, chosen jobs.Selection, filter jobs.Filter) (done []Started, err error) {
	if err := filter.Validate(); err != nil {
		return nil, err
	}
	accounts, err := o.Store.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	var cannot []error
	for _, a := range accounts {
		if !chosen.TakesAccount(a.Project, a.Tenant) {
			continue
		}
		job, err := o.Store.Job(ctx, filter.Normal().BackfillID(a.Email))
		switch {
		case errors.Is(err, jobs.ErrNotFound):
			if chosen.State != "" {
				continue
			}
		case err != nil:
			return done, errors.Join(append(cannot, err)...)
		case chosen.State != "" && job.State != chosen.State,
			chosen.State == "" && job.State != jobs.Failed && job.State != jobs.Cancelled:
			continue
		}
		started, err := o.Start(ctx, cfg, a.Email, filter)
		switch _, unknown := errors.AsType[*UnknownProjectError](err); {
		case goneOn(err):
		case unknown:
			cannot = append(cannot, err)
		case err != nil:
			return done, errors.Join(append(cannot, err)...)
		default:
			done = append(done, started)
		}
	}
	return done, errors.Join(cannot...)
}

// selected lists the backfills that are chosen: those in the state that is or,
// where none is, those that may be.
func (o Operator) selected(ctx context.Context, chosen jobs.Selection, may func(jobs.Job) bool) ([]jobs.Job, error) {
	accounts, err := o.Store.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	tenants := make(map[string]string, len(accounts))
	for _, a := range accounts {
		tenants[a.Email] = a.Tenant
	}
	all, err := o.Store.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(j jobs.Job) bool {
		return j.Kind != jobs.MailBackfill || !chosen.TakesAccount(j.Project, tenants[j.Account]) ||
			!may(j) || chosen.State != "" && j.State != chosen.State
	}), nil
}

// goneOn reports whether a job's state did not allow any more what was chosen a
// moment ago.
func goneOn(err error) bool {
	_, ok := errors.AsType[*jobs.StateError](err)
	return ok
}
