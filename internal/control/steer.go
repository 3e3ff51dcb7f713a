package control

import (
	"context"
	"errors"
	"slices"

	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

// Backfills are steered by name: by the id of one, or by the account for all of its
// own. Those whose state does not allow what was asked for are left alone as long as
// the state of one does. The errors are [jobs.ErrNotFound], and a [*jobs.StateError]
// where no state allows it.

// Steered is a job that was steered.
type Steered struct {
	Job     jobs.Job `json:"job"`
	Changed bool     `json:"changed"` // false: it was so already
}

// Retried is a job whose failed items were made pending again.
type Retried struct {
	Job     jobs.Job `json:"job"`
	Retried int      `json:"retried"`
}

// Pause stops backfills within seconds, until they are resumed.
func (c *Control) Pause(ctx context.Context, name string) ([]Steered, error) {
	s, err := c.store(ctx)
	if err != nil {
		return nil, err
	}
	return c.named(ctx, name, s.Pause)
}

// Cancel ends backfills within seconds; what was stored stays.
func (c *Control) Cancel(ctx context.Context, name string) ([]Steered, error) {
	s, err := c.store(ctx)
	if err != nil {
		return nil, err
	}
	return c.named(ctx, name, s.Cancel)
}

// Resume continues backfills that were paused, or blocked until the account acted.
func (c *Control) Resume(ctx context.Context, name string) ([]Steered, error) {
	s, err := c.toQueue(ctx)
	if err != nil {
		return nil, err
	}
	return c.named(ctx, name, c.putting(s.Resume))
}

// ResumeAll resumes all chosen backfills that are paused, or blocked until their
// account acted.
func (c *Control) ResumeAll(ctx context.Context, chosen jobs.Selection) ([]Steered, error) {
	s, all, err := c.selected(ctx, chosen, func(j jobs.Job) bool {
		return j.State == jobs.Paused || j.State == jobs.Blocked || j.Wanted == jobs.Paused
	})
	if err != nil {
		return nil, err
	}
	done, _, err := each(ctx, all, c.putting(s.Resume))
	return done, err
}

// RetryFailed makes backfills try again those items that they gave up and the filter
// chooses.
func (c *Control) RetryFailed(ctx context.Context, name string, f jobs.FailureFilter) (retried []Retried, err error) {
	s, err := c.toQueue(ctx)
	if err != nil {
		return nil, err
	}
	_, err = c.named(ctx, name, c.retrying(s, f, &retried))
	return retried, err
}

// RetryAll is [Control.RetryFailed] for all chosen backfills that have given something
// up.
func (c *Control) RetryAll(ctx context.Context, chosen jobs.Selection, f jobs.FailureFilter) (retried []Retried, err error) {
	s, all, err := c.selected(ctx, chosen, func(j jobs.Job) bool {
		return j.Progress.Failed > 0 && j.State != jobs.Cancelled && j.State != jobs.Failed && j.State != jobs.Blocked
	})
	if err != nil {
		return nil, err
	}
	_, _, err = each(ctx, all, c.retrying(s, f, &retried))
	return retried, err
}

// StartAll starts the backfills of all chosen accounts, of the part that the filter
// lets through: those in the chosen state or, if none is chosen, those that were never
// started, failed or were cancelled. An account whose project is not in the settings
// does not keep others from starting; the error names it.
func (c *Control) StartAll(ctx context.Context, chosen jobs.Selection, filter jobs.Filter) (done []Started, err error) {
	s, err := c.toQueue(ctx)
	if err != nil {
		return nil, err
	}
	if err := filter.Validate(); err != nil {
		return nil, err
	}
	accounts, err := s.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	var cannot []error
	for _, a := range accounts {
		if !chosen.TakesAccount(a.Project, a.Tenant) {
			continue
		}
		job, err := s.Job(ctx, filter.Normal().BackfillID(a.Email))
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
		var started Started
		if _, _, err = c.mayStart(ctx, a.Email); err == nil {
			started, err = c.start(ctx, s, a.Email, filter)
		}
		switch {
		case isState(err): // it changed a moment ago
		case KindOf(err) == Refused:
			cannot = append(cannot, err)
		case err != nil:
			return done, errors.Join(append(cannot, err)...)
		default:
			done = append(done, started)
		}
	}
	return done, errors.Join(cannot...)
}

// selected lists the chosen backfills: those in the chosen state or, if none is
// chosen, those that may be. It claims the queues before, and returns the store.
func (c *Control) selected(ctx context.Context, chosen jobs.Selection, may func(jobs.Job) bool) (*sqlite.Store, []jobs.Job, error) {
	s, err := c.toQueue(ctx)
	if err != nil {
		return nil, nil, err
	}
	accounts, err := s.Accounts(ctx)
	if err != nil {
		return nil, nil, err
	}
	tenants := make(map[string]string, len(accounts))
	for _, a := range accounts {
		tenants[a.Email] = a.Tenant
	}
	all, err := c.AllBackfills(ctx, false)
	return s, slices.DeleteFunc(all, func(j jobs.Job) bool {
		return !chosen.TakesAccount(j.Project, tenants[j.Account]) || !may(j) || chosen.State != "" && j.State != chosen.State
	}), err
}

// toQueue claims the queues for a use case that writes nothing without them. It
// returns the store.
func (c *Control) toQueue(ctx context.Context) (*sqlite.Store, error) {
	s, err := c.store(ctx)
	if err != nil {
		return nil, err
	}
	return s, c.claim(ctx, s)
}

// An action changes a job, if its state allows that.
type action func(ctx context.Context, id string) (job jobs.Job, changed bool, err error)

// putting is an action that also puts the job's next slice on the queue.
func (c *Control) putting(do action) action {
	return func(ctx context.Context, id string) (jobs.Job, bool, error) {
		job, changed, err := do(ctx, id)
		if err == nil {
			c.put(ctx, job)
		}
		return job, changed, err
	}
}

// retrying is an action that adds what it does to retried.
func (c *Control) retrying(s *sqlite.Store, f jobs.FailureFilter, retried *[]Retried) action {
	return c.putting(func(ctx context.Context, id string) (jobs.Job, bool, error) {
		job, n, err := s.RetryFailed(ctx, id, f)
		if err == nil {
			*retried = append(*retried, Retried{Job: job, Retried: n})
		}
		return job, n > 0, err
	})
}

// named acts on all backfills of a name.
func (c *Control) named(ctx context.Context, name string, do action) ([]Steered, error) {
	all, err := c.Backfills(ctx, name)
	if err != nil {
		return nil, err
	}
	steered, refused, err := each(ctx, all, do)
	if err == nil && len(steered) == 0 {
		return nil, errors.Join(refused...)
	}
	return steered, err
}

// each acts on jobs, and leaves alone those whose state does not allow it.
func each(ctx context.Context, all []jobs.Job, do action) (steered []Steered, refused []error, err error) {
	for _, j := range all {
		job, changed, err := do(ctx, j.ID)
		switch {
		case isState(err):
			refused = append(refused, err)
		case err != nil:
			return steered, refused, err
		default:
			steered = append(steered, Steered{Job: job, Changed: changed})
		}
	}
	return steered, refused, nil
}

// isState reports whether a job's state does not allow what was asked for.
func isState(err error) bool {
	_, ok := errors.AsType[*jobs.StateError](err)
	return ok
}
