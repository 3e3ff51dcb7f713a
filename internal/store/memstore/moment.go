package memstore

import (
	"context"
	"time"

	"headroom/jobs"
)

// RepairMoments sets back moments that are further in the future than any rule sets them,
// and returns what it found.
func (s *Store) RepairMoments(ctx context.Context) ([]jobs.RepairedMoment, error) {
	var r repair
	err := s.do(ctx, func(now time.Time) error {
		r.now = now
		for _, j := range s.jobs {
			if j.State.Live() {
				r.job(j)
			}
		}
		for _, a := range s.accounts {
			r.account(a)
		}
		for i := range s.pauses {
			r.moment("schedule-pause", &s.pauses[i].ResumedAt, 0)
		}
		if len(r.found) > 0 {
			s.revision.Accounts++ // schedulers read the slots again
		}
		return nil
	})
	return r.found, err
}

type repair struct {
	now   time.Time
	found []jobs.RepairedMoment
}

// moment sets back one moment, which no rule sets more than ahead from now.
func (r *repair) moment(what string, at *time.Time, ahead time.Duration) bool {
	if !at.After(r.now.Add(ahead + jobs.ClockTolerance)) {
		return false
	}
	i := len(r.found) - 1
	for ; i >= 0 && r.found[i].What != what; i-- {
	}
	if i < 0 {
		r.found, i = append(r.found, jobs.RepairedMoment{What: what}), len(r.found)
	}
	r.found[i].Count++
	if at.After(r.found[i].Furthest) {
		r.found[i].Furthest = *at
	}
	*at = r.now
	return true
}

func (r *repair) job(j *job) {
	written := j.UpdatedAt
	if r.moment("job", &j.UpdatedAt, 0) && !j.WaitUntil.IsZero() { // it waits as long as it was meant to
		j.WaitUntil = r.now.Add(max(j.WaitUntil.Sub(written), 0))
	}
	r.moment("job", &j.FailingSince, 0)
	for _, i := range j.pending() {
		r.moment("item", &i.due, jobs.LongestItemWait)
	}
}

func (r *repair) account(a *account) {
	if c := a.cursor; c != nil {
		for _, at := range []*time.Time{&c.AskedAt, &c.BegunAt, &c.SyncedAt} {
			r.moment("mail-sync", at, 0)
		}
		r.moment("reconciliation", &c.ReconciledAt, 0)
	}
	if l := a.list; l != nil {
		for _, at := range []*time.Time{&l.AskedAt, &l.BegunAt, &l.SyncedAt, &l.Stream.SyncedAt, &l.Stream.ResyncedAt} {
			r.moment("calendar-sync", at, 0)
		}
		r.moment("calendar-sync", &l.ResumeAt, jobs.LongestStreamWait)
		r.moment("calendar-sync", &l.Stream.NextTry, jobs.LongestStreamWait)
	}
	for _, c := range a.calendars {
		r.moment("calendar", &c.Stream.SyncedAt, 0)
		r.moment("calendar", &c.Stream.ResyncedAt, 0)
		r.moment("calendar", &c.Stream.NextTry, jobs.LongestStreamWait)
	}
	for _, w := range a.watches {
		if r.moment("watch", &w.RenewedAt, 0) {
			w.RenewAt = r.now
		}
		r.moment("watch", &w.NextTry, jobs.LongestWatchWait)
	}
	for _, slot := range a.slots {
		r.moment("schedule-slot", &slot.Slot, 0)
		r.moment("schedule-run", &slot.RanAt, 0)
	}
}
