package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"headroom/internal/control/estimate"
	"headroom/internal/control/progress"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
	"headroom/quota/price"
)

// Started is a backfill that was asked for.
type Started struct {
	Job     jobs.Job `json:"job"`
	Created bool     `json:"created"` // false: it was under way already
}

// StartBackfill starts the backfill of an account's mailbox, or of the part of it
// that the filter lets through: it makes the job's row and puts its first slice on
// the queue. A backfill that is under way or paused is left alone. Nothing is
// written unless account, project and Redis are there.
func (c *Control) StartBackfill(ctx context.Context, email string, filter jobs.Filter) (Started, error) {
	if _, err := c.projects(); err != nil {
		return Started{}, err
	}
	s, _, err := c.mayStart(ctx, email)
	if err != nil {
		return Started{}, err
	}
	if err := c.claim(ctx, s); err != nil {
		return Started{}, err
	}
	return c.start(ctx, s, email, filter)
}

// start is [Control.StartBackfill] after the checks.
func (c *Control) start(ctx context.Context, s *sqlite.Store, email string, filter jobs.Filter) (Started, error) {
	job, created, err := s.StartBackfill(ctx, email, filter)
	if err != nil {
		return Started{}, err
	}
	c.put(ctx, job)
	return Started{Job: job, Created: created}, nil
}

// mayStart returns the store and an account of it. The error gives the reason why nothing
// of the account can be started.
func (c *Control) mayStart(ctx context.Context, email string) (*sqlite.Store, jobs.Account, error) {
	s, err := c.storeOf(ctx, email)
	if err != nil {
		return nil, jobs.Account{}, err
	}
	account, err := s.Account(ctx, email)
	if errors.Is(err, jobs.ErrNotFound) {
		return nil, account, c.unknownAccount(email)
	}
	if err != nil {
		return nil, account, err
	}
	if err := c.knownProject(account.Project); err != nil {
		return nil, account, fmt.Errorf("account %s: %w", account.Email, err)
	}
	return s, account, nil
}

// Backfills returns the backfills of a name, the oldest first: the one with that id,
// which may also be that of a sync, or all of the account with that address. The
// error matches [jobs.ErrNotFound] if there is no backfill.
func (c *Control) Backfills(ctx context.Context, name string) ([]jobs.Job, error) {
	s, err := c.store(ctx)
	if err != nil {
		return nil, err
	}
	if isJobID(name) {
		job, err := s.Job(ctx, name)
		if errors.Is(err, jobs.ErrNotFound) {
			return nil, missing("headroom backfill list names all", "no backfill %s", name)
		}
		return []jobs.Job{job}, err
	}
	all, err := s.AccountJobs(ctx, name)
	if err != nil {
		return nil, err
	}
	if all = mailBackfills(all); len(all) == 0 {
		return nil, missing("start it with: headroom backfill start "+name, "no backfill of %s", name)
	}
	return all, nil
}

// isJobID reports whether a name is the id of a job, which an address is not.
func isJobID(name string) bool {
	return slices.ContainsFunc([]string{jobs.BackfillID(""), jobs.SyncID(""), jobs.CalendarID("")}, func(prefix string) bool {
		return strings.HasPrefix(name, prefix)
	})
}

func mailBackfills(all []jobs.Job) []jobs.Job {
	return slices.DeleteFunc(all, func(j jobs.Job) bool { return j.Kind != jobs.MailBackfill })
}

// AllBackfills lists all backfills, or those only that are under way.
func (c *Control) AllBackfills(ctx context.Context, live bool) ([]jobs.Job, error) {
	all, err := read(ctx, c, func(s *sqlite.Store) ([]jobs.Job, error) {
		if live {
			return s.LiveJobs(ctx)
		}
		return s.Jobs(ctx)
	})
	return mailBackfills(all), err
}

// FindBackfills lists backfills by id, from those after afterID on, as far as the
// filter lets them through.
func (c *Control) FindBackfills(ctx context.Context, f jobs.JobFilter, afterID string, limit int) ([]jobs.Job, error) {
	f.Kind = jobs.MailBackfill
	return read(ctx, c, func(s *sqlite.Store) ([]jobs.Job, error) { return s.FindJobs(ctx, f, afterID, limit) })
}

// Job returns a job by its id.
func (c *Control) Job(ctx context.Context, id string) (jobs.Job, error) {
	return read(ctx, c, func(s *sqlite.Store) (jobs.Job, error) { return s.Job(ctx, id) })
}

// Failures lists what a job could not fetch, by message id from those after afterID
// on.
func (c *Control) Failures(ctx context.Context, id string, f jobs.FailureFilter, afterID string, limit int) ([]jobs.Failure, error) {
	return read(ctx, c, func(s *sqlite.Store) ([]jobs.Failure, error) { return s.Failures(ctx, id, f, afterID, limit) })
}

// Plan is how a backfill gets its messages, by the prices that its project pays.
func (c *Control) Plan(j jobs.Job) (estimate.Plan, error) {
	projects, err := c.projects()
	return estimate.PlanOf(GmailList(projects[j.Project]), j.Filter), err
}

// Estimate asks Google and the store what the backfill of an account would take, and
// starts nothing. Up to sample messages are asked for their sizes.
func (c *Control) Estimate(ctx context.Context, email string, filter jobs.Filter, sample int) (estimate.Estimate, error) {
	projects, err := c.projects()
	if err != nil {
		return estimate.Estimate{}, err
	}
	s, _, err := c.mayStart(ctx, email)
	if err != nil {
		return estimate.Estimate{}, err
	}
	if _, err := c.reach(ctx); err != nil {
		return estimate.Estimate{}, err
	}
	ledger, err := c.ledger()
	if err != nil {
		return estimate.Estimate{}, err
	}
	gmail, err := c.google()
	if err != nil {
		return estimate.Estimate{}, err
	}
	return estimate.Estimator{
		Store: s, Ledger: ledger, Google: gmail, Projects: projects, Scale: c.cfg.Scale, MaxMessageBytes: int64(c.cfg.Worker.MaxMessageBytes),
	}.Estimate(ctx, email, filter, sample)
}

// Speed returns what estimates the speed of a project's backfills, with what the
// settings allow.
func (c *Control) Speed(project string) progress.Speed {
	s := progress.Speed{Window: time.Minute / time.Duration(max(1, c.cfg.Scale))}
	projects, err := c.projects()
	if err != nil {
		return s
	}
	if list := GmailList(projects[project]); list != nil {
		metadata, _ := list.Cost("gmail.users.messages.get", "metadata")
		raw, _ := list.Cost("gmail.users.messages.get", "raw")
		ceiling := *WithModes(c.cfg).Google.Projects[project].Lanes.Backfill.Ceiling
		s.Metadata = float64(metadata) / float64(raw)
		s.Allowed = ceiling * float64(list.Limits[price.UserMinute].Units) / float64(raw) / s.Window.Seconds()
	}
	return s
}
