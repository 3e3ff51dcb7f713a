package workers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"headroom/jobs"
	"headroom/quota"
)

const ann = "ann@example.com"

// memStore is a Store in memory, with the rules of the real one.
type memStore struct {
	hook func(op string) error // before each call, without the lock; nil: none

	mu       sync.Mutex
	jobs     map[string]*memJob
	messages map[string]jobs.Message // by account/id
	blobs    map[string]string
	writes   []string // the writes that succeeded, in order
	batches  []int    // sizes of commits
}

type memJob struct {
	jobs.Job
	items    []*memItem
	failures map[string]jobs.Failure
}

type memItem struct {
	jobs.Item
	done bool
	due  time.Time
}

func newMemStore() *memStore {
	return &memStore{jobs: map[string]*memJob{}, messages: map[string]jobs.Message{}, blobs: map[string]string{}}
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
	if j.Ref() != ref || j.State.Terminal() || j.LeaseUntil.IsZero() {
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
	case j.Epoch != ref.Epoch, j.State.Terminal(), ref.Slice > j.Slice:
		return j.Job, jobs.ErrStale
	case ref.Slice < j.Slice:
		return j.Job, jobs.ErrSliceDone
	case j.LeaseUntil.After(now):
		return j.Job, jobs.ErrHeld
	case !j.LeaseUntil.IsZero():
		j.Epoch++
	}
	j.State, j.WaitingFor, j.WaitUntil, j.LeaseUntil = jobs.Running, "", time.Time{}, now.Add(lease)
	return j.Job, nil
}

func (m *memStore) Renew(ctx context.Context, ref jobs.TaskRef, lease time.Duration) error {
	_, err := m.owned(ctx, "renew", ref, func(j *memJob) error { j.LeaseUntil = time.Now().Add(lease); return nil })
	return err
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
		for _, id := range p.IDs {
			if slices.ContainsFunc(j.items, func(i *memItem) bool { return i.ID == id }) {
				continue
			}
			j.Progress.Listed++
			j.items = append(j.items, &memItem{Item: jobs.Item{Seq: j.Progress.Listed, ID: id}})
		}
		j.Checkpoint.PageToken, j.Checkpoint.Listed = p.Next, p.Next == ""
		return nil
	})
}

func (m *memStore) RestartListing(ctx context.Context, ref jobs.TaskRef) error {
	_, err := m.owned(ctx, "relist", ref, func(j *memJob) error { j.Checkpoint.PageToken = ""; return nil })
	return err
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

func (m *memStore) PutBlob(ctx context.Context, raw []byte) (string, error) {
	if m.hook != nil {
		if err := m.hook("blob"); err != nil {
			return "", err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := fmt.Sprintf("%x", sha256.Sum256(raw))
	m.blobs[sum] = string(raw)
	return sum, nil
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
			case jobs.ItemGone:
				j.Progress.Gone++
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
		j.Slice, j.LeaseUntil = j.Slice+1, time.Time{}
		return nil
	})
}

func (m *memStore) Park(ctx context.Context, ref jobs.TaskRef, p jobs.Park) (jobs.Job, error) {
	return m.owned(ctx, "park", ref, func(j *memJob) error {
		j.State, j.WaitingFor, j.WaitUntil, j.LeaseUntil = jobs.Waiting, p.For, p.Until, time.Time{}
		switch {
		case p.Refused:
			j.Refusals, j.Requeued = j.Refusals+1, j.Requeued+1
		case p.Failure != "":
			j.Failures, j.LastError = j.Failures+1, p.Failure
		}
		return nil
	})
}

func (m *memStore) Finish(ctx context.Context, ref jobs.TaskRef, f jobs.Finish) (jobs.Job, error) {
	return m.owned(ctx, "finish", ref, func(j *memJob) error {
		j.State, j.LastError, j.LeaseUntil = f.State, f.Error, time.Time{}
		return nil
	})
}

func (m *memStore) Account(ctx context.Context, email string) (jobs.Account, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.jobs[jobs.BackfillID(email)] == nil || email == "stranger@example.com" {
		return jobs.Account{}, jobs.ErrNotFound
	}
	return jobs.Account{Email: email, Project: "p"}, nil
}

// memMailbox is a mailbox of n messages, m0 and so on, listed perPage a page.
type memMailbox struct {
	n, perPage int
	loop       string        // a page token whose page names itself as the next
	latency    time.Duration // of a call
	slow       time.Duration // of a get, where not that
	// fault decides on a call ("profile", "list TOKEN", "get ID"), the nth of
	// its name, from 1; nil: all succeed.
	fault func(call string, nth int) error

	mu       sync.Mutex
	calls    []string
	times    map[string]int
	inFlight int
	most     int
}

// Mailbox makes a mailbox the whole of Google.
func (b *memMailbox) Mailbox(context.Context, jobs.Account, quota.Lane, time.Duration) (Mailbox, error) {
	return b, nil
}

func (b *memMailbox) call(ctx context.Context, name string) error {
	b.mu.Lock()
	if b.times == nil {
		b.times = map[string]int{}
	}
	b.times[name]++
	nth := b.times[name]
	b.calls = append(b.calls, name)
	b.inFlight++
	b.most = max(b.most, b.inFlight)
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.inFlight--
		b.mu.Unlock()
	}()
	latency := b.latency
	if strings.HasPrefix(name, "get") {
		latency = cmp.Or(b.slow, latency)
	}
	if latency > 0 {
		timer := time.NewTimer(latency)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if b.fault != nil {
		return b.fault(name, nth)
	}
	return ctx.Err()
}

// made returns how often a call was made.
func (b *memMailbox) made(call string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.times[call]
}

func (b *memMailbox) Profile(ctx context.Context) (jobs.Profile, error) {
	return jobs.Profile{Email: ann, Messages: int64(b.n), HistoryID: 77}, b.call(ctx, "profile")
}

func (b *memMailbox) List(ctx context.Context, token string) (jobs.Page, error) {
	if err := b.call(ctx, "list "+token); err != nil {
		return jobs.Page{}, err
	}
	from, _ := strconv.Atoi(token)
	to := min(from+cmp.Or(b.perPage, 500), b.n)
	page := jobs.Page{}
	for i := from; i < to; i++ {
		page.IDs = append(page.IDs, "m"+strconv.Itoa(i))
	}
	if to < b.n {
		page.Next = strconv.Itoa(to)
	}
	if token != "" && token == b.loop {
		page.Next = token
	}
	return page, nil
}

func (b *memMailbox) Fetch(ctx context.Context, id string, use func(jobs.Fetched) error) error {
	if err := b.call(ctx, "get "+id); err != nil {
		return err
	}
	return use(jobs.Fetched{ID: id, HistoryID: 5, Labels: []string{"INBOX"}, Raw: []byte("Subject: about " + id + "\r\n\r\nbody\r\n")})
}

// puts is a queue that only remembers.
type puts struct {
	mu   sync.Mutex
	err  error
	refs []jobs.TaskRef
}

func (p *puts) Put(_ context.Context, ref jobs.TaskRef) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	p.refs = append(p.refs, ref)
	return nil
}

// rig is a handler with everything around it in memory.
type rig struct {
	*handler
	t     *testing.T
	store *memStore
	box   *memMailbox
	queue *puts
	stop  chan struct{}
	ref   jobs.TaskRef // of the first slice
}

func subjectOf(raw []byte) (string, error) {
	return string(raw[len("Subject: ") : len(raw)-len("\r\n\r\nbody\r\n")]), nil
}

func newRig(t *testing.T, box *memMailbox, change ...func(*Options)) *rig {
	t.Helper()
	b := &rig{t: t, store: newMemStore(), box: box, queue: &puts{}, stop: make(chan struct{})}
	b.ref = b.store.start(ann)
	o := Options{Store: b.store, Google: box, Parser: subjectOf, Log: zap.NewNop(), Registerer: prometheus.NewRegistry()}
	for _, f := range change {
		f(&o)
	}
	o, _ = o.withDefaults() // without Redis, which a handler does not use
	b.handler = &handler{opts: o, lane: quota.Backfill, queue: b.queue, drain: b.stop,
		memory: newMemory(), metrics: newMetrics(o.Registerer), log: o.Log}
	return b
}

// slice runs one task and returns what the handler returned.
func (b *rig) slice(ref jobs.TaskRef) error {
	payload, err := json.Marshal(ref)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), b.opts.TaskTimeout)
	defer cancel()
	return b.ProcessTask(ctx, asynq.NewTask(jobs.TaskType, payload))
}

// mustPark runs one task that must park, and returns why.
func (b *rig) mustPark(ref jobs.TaskRef) *ParkedError {
	b.t.Helper()
	err := b.slice(ref)
	parked, ok := err.(*ParkedError)
	if !ok {
		b.t.Fatalf("slice %s = %v, want a *ParkedError; row: %+v", ref.TaskID(), err, b.store.job(ref.Job))
	}
	return parked
}

// toEnd runs the job as Asynq would, in the bubble's time, and returns its row.
func (b *rig) toEnd() jobs.Job {
	b.t.Helper()
	for range 1000 {
		row := b.store.job(b.ref.Job)
		if row.State.Terminal() {
			return row
		}
		err := b.slice(row.Ref())
		if parked, ok := err.(*ParkedError); ok {
			<-time.After(parkDelay(time.Until(parked.Until)))
		} else if err != nil {
			b.t.Fatalf("slice %s: %v", row.Ref().TaskID(), err)
		}
	}
	b.t.Fatalf("the job did not end: %+v", b.store.job(b.ref.Job))
	return jobs.Job{}
}

func transient(reason string) error {
	return &jobs.CallError{Class: jobs.ClassTransient, Reason: reason, Err: fmt.Errorf("503 %s", reason)}
}

func denied(wait time.Duration) error {
	return fmt.Errorf("get: %w", &quota.DeniedError{Caller: quota.Caller{Lane: quota.Backfill}, Cost: 20, Limit: "user-minute",
		Bound: quota.BoundCeiling, Used: 4800, Ceiling: 4800, RetryAfter: wait, At: time.Now().Add(wait)})
}
