package workers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"headroom/jobs"
)

// memStore is a Store in memory, with the rules of the real one.
type memStore struct {
	hook func(op string) error // before each call, without the lock; nil: none
	skip func(id string) bool  // ids that are known when listed, with the lock; nil: none

	mu       sync.Mutex
	jobs     map[string]*memJob
	messages map[string]jobs.Message // by account/id
	writes   []string                // the writes that succeeded, in order
	batches  []int                   // sizes of commits
}

type memJob struct {
	jobs.Job
	items    []*memItem
	failures map[string]jobs.Failure
}

type memItem struct {
	jobs.Item
	done  bool
	waits bool // noted, for the next pass
	due   time.Time
}

func newMemStore() *memStore {
	return &memStore{jobs: map[string]*memJob{}, messages: map[string]jobs.Message{}}
}

// start adds a job for an account and returns its first slice.
func (m *memStore) start(email string) jobs.TaskRef {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := &memJob{Job: jobs.Job{ID: jobs.BackfillID(email), Kind: jobs.MailBackfill, Account: email,
		Project: "p", State: jobs.Queued, Epoch: 1}, failures: map[string]jobs.Failure{}}
	m.jobs[j.ID] = j
	return j.Ref()
}

// job returns a copy of a job's row.
func (m *memStore) job(id string) jobs.Job {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.jobs[id].Job
}

func (m *memStore) failure(id, item string) jobs.Failure {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.jobs[id].failures[item]
}

func (m *memStore) written() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.writes)
}

// edit changes a job's row behind the workers' back.
func (m *memStore) edit(id string, f func(*jobs.Job)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.jobs[id].Job)
}

// owned runs f on the job that ref owns.
func (m *memStore) owned(ctx context.Context, op string, ref jobs.TaskRef, f func(*memJob) error) (jobs.Job, error) {
	if m.hook != nil {
		if err := m.hook(op); err != nil {
			return jobs.Job{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return jobs.Job{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.jobs[ref.Job]
	if j == nil {
		return jobs.Job{}, jobs.ErrNotFound
	}
	if j.Ref() != ref || !j.State.Live() || j.LeaseUntil.IsZero() {
		return jobs.Job{}, fmt.Errorf("%s %s: %w", op, ref.TaskID(), jobs.ErrStale)
	}
	if err := f(j); err != nil {
		return jobs.Job{}, err
	}
	m.writes = append(m.writes, op)
	return j.Job, nil
}

func (m *memStore) Claim(ctx context.Context, ref jobs.TaskRef, lease time.Duration) (jobs.Job, error) {
	if m.hook != nil {
		if err := m.hook("claim"); err != nil {
			return jobs.Job{}, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.jobs[ref.Job]
	now := time.Now()
	switch {
	case j == nil:
		return jobs.Job{}, jobs.ErrNotFound
	case j.Epoch != ref.Epoch, !j.State.Live(), ref.Slice > j.Slice:
		return j.Job, jobs.ErrStale
	case ref.Slice < j.Slice:
		return j.Job, jobs.ErrSliceDone
	case j.LeaseUntil.After(now):
		return j.Job, jobs.ErrHeld
	case j.Wanted != "":
		j.Epoch++
		j.release()
		return j.Job, jobs.ErrStale
	case !j.LeaseUntil.IsZero():
		j.Epoch++
	}
	j.State, j.WaitingFor, j.WaitUntil, j.LeaseUntil = jobs.Running, "", time.Time{}, now.Add(lease)
	return j.Job, nil
}

func (m *memStore) Renew(ctx context.Context, ref jobs.TaskRef, lease time.Duration) (jobs.Job, error) {
	return m.owned(ctx, "renew", ref, func(j *memJob) error { j.LeaseUntil = time.Now().Add(lease); return nil })
}

// release gives the job's lease back, and brings the job where it is wanted.
func (j *memJob) release() {
	j.LeaseUntil = time.Time{}
	if j.Wanted != "" {
		j.State, j.Wanted, j.WaitingFor, j.WaitUntil = j.Wanted, "", "", time.Time{}
	}
}

func (m *memStore) SaveProfile(ctx context.Context, ref jobs.TaskRef, p jobs.Profile) error {
	_, err := m.owned(ctx, "profile", ref, func(j *memJob) error {
		j.Checkpoint.HistoryID = cmp.Or(j.Checkpoint.HistoryID, p.HistoryID)
		j.Progress.Expected = p.Messages
		return nil
	})
	return err
}

func (m *memStore) AddListed(ctx context.Context, ref jobs.TaskRef, p jobs.Page) (jobs.Job, error) {
	return m.owned(ctx, "listed", ref, func(j *memJob) error {
		all := true
		for _, id := range p.IDs {
			if j.Room() == 0 {
				all = false
				break
			}
			if slices.ContainsFunc(j.items, func(i *memItem) bool { return i.ID == id }) {
				continue
			}
			j.Progress.Listed++
			known := m.skip != nil && m.skip(id)
			if known {
				j.Progress.Known++
			}
			j.items = append(j.items, &memItem{Item: jobs.Item{Seq: j.Progress.Listed, ID: id}, done: known})
		}
		if all {
			j.Checkpoint.PageToken = p.Next
		}
		j.Checkpoint.Cut = j.Room() == 0 && (!all || p.Next != "")
		j.Checkpoint.Listed = j.Checkpoint.Cut || p.Next == ""
		return nil
	})
}

func (m *memStore) RestartListing(ctx context.Context, ref jobs.TaskRef, before time.Time) (jobs.Job, error) {
	return m.owned(ctx, "relist", ref, func(j *memJob) error {
		j.Checkpoint.PageToken, j.Checkpoint.Listed, j.Checkpoint.Cut = "", false, false
		if !before.IsZero() {
			j.Checkpoint.Before = before
		}
		return nil
	})
}

func (m *memStore) NextPass(ctx context.Context, ref jobs.TaskRef) (more bool, err error) {
	_, err = m.owned(ctx, "pass", ref, func(j *memJob) error {
		for _, i := range j.items {
			if i.Noted && i.waits {
				i.waits, i.done, i.Attempts, more = false, false, 0, true
			}
		}
		return nil
	})
	return more, err
}

func (m *memStore) NextItems(ctx context.Context, ref jobs.TaskRef, after int64, limit int) (next []jobs.Item, err error) {
	_, err = m.owned(ctx, "next", ref, func(j *memJob) error {
		for _, i := range j.items {
			if !i.done && i.Seq > after && !i.due.After(time.Now()) && len(next) < limit {
				next = append(next, i.Item)
			}
		}
		return nil
	})
	return next, err
}

func (m *memStore) ThreadItems(context.Context, jobs.TaskRef, string, int) ([]jobs.Item, error) {
	return nil, nil
}

func (m *memStore) SaveAttachment(context.Context, jobs.TaskRef, string, jobs.Attachment) error {
	return errNoSync
}

func (m *memStore) Attachments(context.Context, string, string) ([]jobs.Attachment, error) {
	return nil, errNoSync
}

func (m *memStore) SaveLabels(context.Context, jobs.TaskRef, []jobs.Label) error { return errNoSync }

func (m *memStore) NextDue(ctx context.Context, ref jobs.TaskRef) (due time.Time, err error) {
	_, err = m.owned(ctx, "due", ref, func(j *memJob) error {
		for _, i := range j.items {
			at := i.due
			if at.IsZero() {
				at = time.Now()
			}
			if !i.done && (due.IsZero() || at.Before(due)) {
				due = at
			}
		}
		return nil
	})
	return due, err
}

func (m *memStore) StoredID(_ context.Context, account string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, message := range m.messages { // in random order
		if message.Account == account {
			return message.ID, nil
		}
	}
	return "", jobs.ErrNotFound
}

func (m *memStore) Commit(ctx context.Context, ref jobs.TaskRef, results []jobs.Result) (jobs.Job, error) {
	return m.owned(ctx, "commit", ref, func(j *memJob) error {
		m.batches = append(m.batches, len(results))
		for _, r := range results {
			at := slices.IndexFunc(j.items, func(i *memItem) bool { return i.ID == r.ID })
			if at < 0 || j.items[at].done {
				return fmt.Errorf("item %s is not pending", r.ID)
			}
			item := j.items[at]
			item.done = r.Outcome != jobs.ItemDeferred
			switch r.Outcome {
			case jobs.ItemStored:
				j.Progress.Stored++
				m.messages[j.Account+"/"+r.ID] = *r.Message
				delete(j.failures, r.ID)
			case jobs.ItemNoted:
				j.Progress.Noted++
				item.Noted, item.waits = true, true
				m.messages[j.Account+"/"+r.ID] = *r.Message
			case jobs.ItemGone:
				j.Progress.Gone++
			case jobs.ItemOversize:
				j.Progress.Oversize++
			case jobs.ItemSkipped:
				j.Progress.Skipped++
			case jobs.ItemFailed:
				j.Progress.Failed++
				j.failures[r.ID] = *r.Failure
			case jobs.ItemDeferred:
				item.Attempts, item.due = item.Attempts+1, r.RetryAt
				j.failures[r.ID] = *r.Failure
				continue
			}
			j.Refusals, j.Failures = 0, 0
		}
		return nil
	})
}

func (m *memStore) EndSlice(ctx context.Context, ref jobs.TaskRef) (jobs.Job, error) {
	return m.owned(ctx, "end", ref, func(j *memJob) error {
		j.Slice++
		j.release()
		return nil
	})
}

func (m *memStore) Park(ctx context.Context, ref jobs.TaskRef, p jobs.Park) (jobs.Job, error) {
	return m.owned(ctx, "park", ref, func(j *memJob) error {
		j.State, j.WaitingFor, j.WaitUntil = jobs.Waiting, p.For, p.Until
		switch {
		case p.Refused:
			j.Refusals, j.Requeued, j.QuotaWait = j.Refusals+1, j.Requeued+1, true
		case p.Failure != "":
			if j.Failures == 0 || j.QuotaWait {
				j.FailingSince = time.Now()
			}
			j.QuotaWait = false
			j.Failures, j.LastError = j.Failures+1, p.Failure
		}
		j.release()
		return nil
	})
}

func (m *memStore) Finish(ctx context.Context, ref jobs.TaskRef, f jobs.Finish) (jobs.Job, error) {
	return m.owned(ctx, "finish", ref, func(j *memJob) error {
		completes := f.State == jobs.Completed || f.State == jobs.CompletedWithFailures
		if completes && slices.ContainsFunc(j.items, func(i *memItem) bool { return !i.done }) {
			j.Slice++
			j.release()
			return nil
		}
		if j.Wanted == jobs.Cancelled && !completes {
			f.State = jobs.Cancelled
		}
		j.State, j.Wanted, j.LastError, j.LeaseUntil = f.State, "", f.Error, time.Time{}
		return nil
	})
}

func (m *memStore) Account(ctx context.Context, email string) (jobs.Account, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.jobs[jobs.BackfillID(email)] == nil || email == "stranger@example.com" {
		return jobs.Account{}, jobs.ErrNotFound
	}
	return jobs.Account{Email: email, Project: "p", Mailbox: email}, nil
}

func (m *memStore) NoteMailbox(context.Context, jobs.TaskRef, string) ([]string, error) {
	return nil, nil
}

// Charge implements workers.Store; nothing here has shares.
func (*memStore) Charge(context.Context, jobs.TaskRef, int64) error { return nil }
