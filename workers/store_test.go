package workers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"headroom/internal/store/memstore"
	"headroom/internal/store/storetest"
	"headroom/jobs"
)

// The seam of stores is at least what workers call.
var _ interface {
	Store
	CalendarStore
	WatchStore
} = storetest.Store(nil)

// stranger is an account of which there are jobs, but which was removed.
const stranger = "stranger@example.com"

// testStore is a store in memory that can be made to fail, and remembers what was asked
// of it.
type testStore struct {
	*memstore.Store
	t    testing.TB
	hook func(op string) error // before each call of a slice; nil: none

	mu       sync.Mutex
	ops      []string // the calls of slices that succeeded, in order
	batches  []int    // sizes of commits
	attempts int      // failed ones, by the results that were committed
}

func newTestStore(t testing.TB) *testStore {
	return &testStore{Store: memstore.New(memstore.Options{}), t: t}
}

// op runs one call of a slice, unless the hook fails it.
func op[V any](s *testStore, name string, call func() (V, error)) (v V, err error) {
	if s.hook != nil {
		if err := s.hook(name); err != nil {
			return v, err
		}
	}
	if v, err = call(); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ops = append(s.ops, name)
	}
	return v, err
}

func (s *testStore) Claim(ctx context.Context, ref jobs.TaskRef, lease time.Duration) (jobs.Job, error) {
	return op(s, "claim", func() (jobs.Job, error) { return s.Store.Claim(ctx, ref, lease) })
}

func (s *testStore) Renew(ctx context.Context, ref jobs.TaskRef, lease time.Duration) (jobs.Job, error) {
	return op(s, "renew", func() (jobs.Job, error) { return s.Store.Renew(ctx, ref, lease) })
}

func (s *testStore) SaveProfile(ctx context.Context, ref jobs.TaskRef, p jobs.Profile) error {
	_, err := op(s, "profile", func() (any, error) { return nil, s.Store.SaveProfile(ctx, ref, p) })
	return err
}

func (s *testStore) AddListed(ctx context.Context, ref jobs.TaskRef, p jobs.Page) (jobs.Job, error) {
	return op(s, "listed", func() (jobs.Job, error) { return s.Store.AddListed(ctx, ref, p) })
}

func (s *testStore) NextItems(ctx context.Context, ref jobs.TaskRef, after int64, limit int) ([]jobs.Item, error) {
	return op(s, "next", func() ([]jobs.Item, error) { return s.Store.NextItems(ctx, ref, after, limit) })
}

func (s *testStore) NextDue(ctx context.Context, ref jobs.TaskRef) (time.Time, error) {
	return op(s, "due", func() (time.Time, error) { return s.Store.NextDue(ctx, ref) })
}

func (s *testStore) Commit(ctx context.Context, ref jobs.TaskRef, results []jobs.Result) (jobs.Job, error) {
	return op(s, "commit", func() (jobs.Job, error) {
		j, err := s.Store.Commit(ctx, ref, results)
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.batches = append(s.batches, len(results))
			for _, r := range results {
				if r.Failure != nil {
					s.attempts++
				}
			}
		}
		return j, err
	})
}

func (s *testStore) EndSlice(ctx context.Context, ref jobs.TaskRef) (jobs.Job, error) {
	return op(s, "end", func() (jobs.Job, error) { return s.Store.EndSlice(ctx, ref) })
}

func (s *testStore) Park(ctx context.Context, ref jobs.TaskRef, p jobs.Park) (jobs.Job, error) {
	return op(s, "park", func() (jobs.Job, error) { return s.Store.Park(ctx, ref, p) })
}

func (s *testStore) Finish(ctx context.Context, ref jobs.TaskRef, f jobs.Finish) (jobs.Job, error) {
	return op(s, "finish", func() (jobs.Job, error) { return s.Store.Finish(ctx, ref, f) })
}

func (s *testStore) Account(ctx context.Context, email string) (jobs.Account, error) {
	if email == stranger {
		return jobs.Account{}, jobs.ErrNotFound
	}
	return s.Store.Account(ctx, email)
}

// start starts and admits the backfill of an account, and returns its first slice.
func (s *testStore) start(email string) jobs.TaskRef { return s.startPart(email, jobs.Filter{}) }

func (s *testStore) startPart(email string, f jobs.Filter) jobs.TaskRef {
	s.t.Helper()
	if err := s.AddAccount(context.Background(), jobs.Account{Email: email, Project: "p"}); err != nil && !errors.Is(err, jobs.ErrExists) {
		s.t.Fatal(err)
	}
	j, created, err := s.StartBackfill(context.Background(), email, f)
	if created {
		j, err = s.SetAdmission(context.Background(), j.ID, jobs.NotAdmitted, jobs.Admitted)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return j.Ref()
}

// seed stores messages of ann's, as another backfill would.
func (s *testStore) seed(ids ...string) {
	s.t.Helper()
	ctx, f := context.Background(), jobs.Filter{Labels: []string{"seed"}}
	j, err := s.Store.Claim(ctx, s.startPart(ann, f), time.Hour)
	if err == nil {
		_, err = s.Store.AddListed(ctx, j.Ref(), jobs.Page{IDs: ids})
	}
	var results []jobs.Result
	for _, id := range ids {
		results = append(results, jobs.Result{ID: id, Outcome: jobs.ItemStored, Message: &jobs.Message{ID: id, SHA256: strings.Repeat("ab", 32)}})
	}
	if err == nil {
		_, err = s.Store.Commit(ctx, j.Ref(), results)
	}
	if err == nil {
		_, err = s.Store.Finish(ctx, j.Ref(), jobs.Finish{State: jobs.Completed})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// job returns a job's row.
func (s *testStore) job(id string) jobs.Job {
	j, err := s.Job(context.Background(), id)
	if err != nil {
		s.t.Error(err)
	}
	return j
}

// failure returns the entry of an item in a job's failure list, or the zero Failure.
func (s *testStore) failure(id, item string) jobs.Failure {
	all, err := s.Failures(context.Background(), id, jobs.FailureFilter{IDs: []string{item}}, "", 0)
	if err != nil {
		s.t.Error(err)
	}
	if len(all) == 0 {
		return jobs.Failure{}
	}
	return all[0]
}

// messages are ann's stored messages by id.
func (s *testStore) messages() map[string]jobs.Message {
	all, err := s.Messages(context.Background(), ann, "", 1<<20)
	if err != nil {
		s.t.Error(err)
	}
	byID := map[string]jobs.Message{}
	for _, m := range all {
		byID[m.ID] = m
	}
	return byID
}

func (s *testStore) done() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ops)
}

// failedAttempts is how often an item failed, by what was committed.
func (s *testStore) failedAttempts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attempts
}
