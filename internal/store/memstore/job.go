package memstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"headroom/jobs"
)

// job is a job's row with its items and its failure list.
type job struct {
	jobs.Job
	items    map[string]*item
	failures map[string]*jobs.Failure
}

// StartBackfill starts the backfill of an account with a filter; see
// [jobs.Job.CanStart] and [jobs.Job.Restart].
func (s *Store) StartBackfill(ctx context.Context, email string, filter jobs.Filter) (out jobs.Job, created bool, err error) {
	if err := filter.Validate(); err != nil {
		return jobs.Job{}, false, fmt.Errorf("start backfill of %q: %w", email, err)
	}
	filter = filter.Normal()
	err = s.do(ctx, func(now time.Time) error {
		a, err := s.account(email)
		if err != nil {
			return err
		}
		j := s.jobs[filter.BackfillID(a.Email)]
		if j == nil {
			j = s.add(jobs.MailBackfill, filter.BackfillID(a.Email), a, now)
			j.Filter = filter
			out, created = j.Job, true
			return nil
		}
		if created, err = j.CanStart(); err != nil || !created {
			out = j.Job
			return err
		}
		j.clear(func(i *item) bool { return i.state != jobs.ItemSkipped })
		for _, i := range j.items {
			i.Seq = 0 // not listed again yet
		}
		clear(j.failures)
		j.Restart(a.Project, a.hasMessages())
		out = s.save(j, now)
		return nil
	})
	return out, created, saying(err, "start backfill of "+email)
}

// add adds a queued job.
func (s *Store) add(kind jobs.Kind, id string, a *account, now time.Time) *job {
	j := &job{items: map[string]*item{}, failures: map[string]*jobs.Failure{}, Job: jobs.Job{ID: id, Kind: kind, Account: a.Email,
		Project: a.Project, State: jobs.Queued, Admission: jobs.FirstAdmission(kind), Epoch: 1, CreatedAt: now, UpdatedAt: now}}
	s.jobs[id] = j
	return j
}

// clear drops items.
func (j *job) clear(drop func(*item) bool) {
	for id, i := range j.items {
		if drop(i) {
			delete(j.items, id)
		}
	}
}

// Job returns one job, or [jobs.ErrNotFound].
func (s *Store) Job(ctx context.Context, id string) (out jobs.Job, err error) {
	err = s.do(ctx, func(time.Time) error {
		j, err := s.job(id)
		if err == nil {
			out = j.Job
		}
		return err
	})
	return out, err
}

// LiveJobs lists the jobs that must have a task or an owner, the oldest first.
func (s *Store) LiveJobs(ctx context.Context) (live []jobs.Job, err error) {
	err = s.do(ctx, func(time.Time) error {
		for _, j := range s.jobs {
			if j.State.Live() {
				live = append(live, j.Job)
			}
		}
		slices.SortFunc(live, older)
		return nil
	})
	return live, err
}

func older(a, b jobs.Job) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// Pause is [jobs.Job.Pause] in the store.
func (s *Store) Pause(ctx context.Context, id string) (out jobs.Job, changed bool, err error) {
	return s.steer(ctx, id, "pause", (*jobs.Job).Pause)
}

// Resume is [jobs.Job.Resume] in the store.
func (s *Store) Resume(ctx context.Context, id string) (out jobs.Job, changed bool, err error) {
	return s.steer(ctx, id, "resume", func(j *jobs.Job, _ time.Time) (bool, error) { return j.Resume() })
}

// Cancel is [jobs.Job.Cancel] in the store. What was asked of a sync is forgotten.
func (s *Store) Cancel(ctx context.Context, id string) (out jobs.Job, changed bool, err error) {
	return s.steer(ctx, id, "cancel", (*jobs.Job).Cancel)
}

func (s *Store) steer(ctx context.Context, id, verb string, change func(*jobs.Job, time.Time) (bool, error)) (out jobs.Job, changed bool, err error) {
	err = s.do(ctx, func(now time.Time) error {
		j, err := s.job(id)
		if err != nil {
			return err
		}
		if changed, err = change(&j.Job, now); err != nil {
			return err
		}
		if changed {
			if j.Wanted == jobs.Cancelled {
				s.forgetAsk(j)
			}
			s.save(j, now)
		}
		out = j.Job
		return nil
	})
	return out, changed, saying(err, verb)
}

// saying puts what was being done before an error, unless that says it itself.
func saying(err error, verb string) error {
	if _, ok := errors.AsType[*jobs.StateError](err); ok || err == nil {
		return err
	}
	return fmt.Errorf("%s: %w", verb, err)
}

// Candidates lists the live backfills, the oldest first.
func (s *Store) Candidates(ctx context.Context) (all []jobs.Candidate, err error) {
	live, err := s.LiveJobs(ctx)
	if err != nil {
		return nil, err
	}
	err = s.do(ctx, func(time.Time) error {
		for _, j := range live {
			if j.Kind == jobs.MailBackfill {
				a := s.accounts[j.Account].shown()
				all = append(all, jobs.Candidate{Job: j.ID, Account: j.Account, Project: j.Project, Tenant: a.Tenant, Class: a.Class,
					Admission: j.Admission, WaitUntil: j.WaitUntil, Units: j.Units})
			}
		}
		return nil
	})
	return all, err
}

// SetAdmission is [jobs.Job.Admit] in the store.
func (s *Store) SetAdmission(ctx context.Context, id string, from, to jobs.Admission) (out jobs.Job, err error) {
	err = s.do(ctx, func(now time.Time) error {
		j, err := s.job(id)
		if err == nil {
			err = j.Admit(from, to)
		}
		if err == nil {
			out = s.save(j, now)
		}
		return err
	})
	return out, err
}

// Edit changes a job's row behind the back of its owner, for tests. The row must exist.
func (s *Store) Edit(id string, change func(*jobs.Job)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.jobs[id].Job)
}

// Put stores a job's row as it is, with its account if that is not there, for tests.
func (s *Store) Put(row jobs.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[row.Account]
	if a == nil {
		a = s.addAccount(jobs.Account{Email: row.Account, Project: row.Project})
	}
	j := s.jobs[row.ID]
	if j == nil {
		j = s.add(row.Kind, row.ID, a, row.CreatedAt)
	}
	j.Job = row
}
