package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"headroom/jobs"
)

// item is one id on a job's list.
type item struct {
	jobs.Item
	state jobs.Outcome
	due   time.Time // of one that is tried again; zero: now
}

// pending are the items that nobody is done with, in the order of the listing.
func (j *job) pending() []*item { return j.in(jobs.ItemPending) }

func (j *job) in(state jobs.Outcome) (all []*item) {
	for _, i := range j.items {
		if i.state == state {
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(a, b *item) int { return cmp.Compare(a.Seq, b.Seq) })
	return all
}

// adds puts ids on a job's list, for [jobs.Job.AddItems].
func (a *account) adds(j *job) func(id, thread string, seq int64) (jobs.Outcome, bool, error) {
	return func(id, thread string, seq int64) (jobs.Outcome, bool, error) {
		i := j.items[id]
		switch {
		case i == nil:
			i = &item{Item: jobs.Item{ID: id}, state: jobs.ItemPending}
			if m := a.messages[id]; m != nil {
				i.state = m.ListedFor(j.Filter)
			}
			j.items[id] = i
		case i.Seq != 0:
			return "", false, nil // listed before
		}
		i.Seq, i.Thread = seq, thread
		return i.state, true, nil
	}
}

// SaveProfile is [jobs.Job.TakeProfile] in the store. The first backfill of the whole
// mailbox gives it its cursor.
func (s *Store) SaveProfile(ctx context.Context, ref jobs.TaskRef, p jobs.Profile) error {
	_, err := s.owned(ctx, ref, "save profile", func(j *job, a *account, now time.Time) error {
		j.TakeProfile(p)
		s.pinCursor(j, a, now)
		return nil
	})
	return err
}

// AddListed is [jobs.Job.ListPage] in the store.
func (s *Store) AddListed(ctx context.Context, ref jobs.TaskRef, p jobs.Page) (jobs.Job, error) {
	return s.owned(ctx, ref, "add listed page", func(j *job, a *account, _ time.Time) error {
		return j.ListPage(p, a.adds(j))
	})
}

// RestartListing is [jobs.Job.RestartListing] in the store.
func (s *Store) RestartListing(ctx context.Context, ref jobs.TaskRef, before time.Time) (jobs.Job, error) {
	return s.owned(ctx, ref, "restart listing", func(j *job, _ *account, _ time.Time) error {
		j.RestartListing(before)
		return nil
	})
}

// peek runs fn for the owner of a slice, and writes nothing.
func (s *Store) peek(ctx context.Context, ref jobs.TaskRef, fn func(j *job, a *account, now time.Time)) error {
	return s.do(ctx, func(now time.Time) error {
		j, err := s.job(ref.Job)
		if err != nil {
			return err
		}
		if err := j.OwnedBy(ref); err != nil {
			return err
		}
		fn(j, s.accounts[j.Account], now)
		return nil
	})
}

// NextItems returns at most limit items that are pending and due, in the order of
// their listing, from those after place afterSeq.
func (s *Store) NextItems(ctx context.Context, ref jobs.TaskRef, afterSeq int64, limit int) ([]jobs.Item, error) {
	return s.items(ctx, ref, limit, func(i *item, now time.Time) bool { return i.Seq > afterSeq && !i.due.After(now) })
}

// ThreadItems returns the pending items of a thread that nobody has tried yet.
func (s *Store) ThreadItems(ctx context.Context, ref jobs.TaskRef, thread string, limit int) ([]jobs.Item, error) {
	return s.items(ctx, ref, limit, func(i *item, _ time.Time) bool {
		return thread != "" && i.Thread == thread && i.due.IsZero() && !i.Noted
	})
}

func (s *Store) items(ctx context.Context, ref jobs.TaskRef, limit int, take func(*item, time.Time) bool) (all []jobs.Item, err error) {
	err = s.peek(ctx, ref, func(j *job, a *account, now time.Time) {
		for _, i := range j.pending() {
			if len(all) == page(limit) {
				return
			}
			if !take(i, now) {
				continue
			}
			one := i.Item
			if m := a.messages[i.ID]; m != nil {
				one.Size = m.Size
			}
			all = append(all, one)
		}
	})
	return all, err
}

// page is the number of rows that a limit stands for.
func page(limit int) int {
	if limit <= 0 {
		return 500
	}
	return limit
}

// NextDue returns the earliest moment, on the caller's clock, at which a pending item
// is due; a moment that has passed means now. It is zero if no item is pending.
func (s *Store) NextDue(ctx context.Context, ref jobs.TaskRef) (due time.Time, err error) {
	err = s.peek(ctx, ref, func(j *job, _ *account, now time.Time) {
		pending := j.pending()
		if len(pending) == 0 {
			return
		}
		first := slices.MinFunc(pending, func(a, b *item) int { return a.due.Compare(b.due) }).due
		due = time.Now().Add(max(first.Sub(now), 0))
	})
	return due, err
}

// NextPass makes the items pending of which only the metadata is stored, and reports
// whether there were any.
func (s *Store) NextPass(ctx context.Context, ref jobs.TaskRef) (more bool, err error) {
	_, err = s.owned(ctx, ref, "begin the next pass", func(j *job, _ *account, _ time.Time) error {
		for _, i := range j.in(jobs.ItemNoted) {
			i.state, i.Attempts, i.due, more = jobs.ItemPending, 0, time.Time{}, true
		}
		return nil
	})
	return more, err
}
