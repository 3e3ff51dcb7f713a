package scheduler_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"headroom/jobs"
	"headroom/scheduler"
)

// mailboxes are those whose sync is due until it was started. The first look
// fails, and so does the start of bob's.
type mailboxes struct {
	mu    sync.Mutex
	due   []string
	looks int
}

func (m *mailboxes) DueSyncs(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.looks++; m.looks == 1 {
		return nil, errors.New("the store is away")
	}
	return slices.Clone(m.due), nil
}

func (m *mailboxes) StartDueSync(_ context.Context, account string) (jobs.Job, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if account == "bob" {
		return jobs.Job{}, false, errors.New("no such account")
	}
	started := slices.Contains(m.due, account)
	m.due = slices.DeleteFunc(m.due, func(a string) bool { return a == account })
	return jobs.Job{ID: jobs.SyncID(account), Epoch: 3}, started, nil
}

type putQueue struct {
	mu   sync.Mutex
	refs []jobs.TaskRef
}

func (q *putQueue) Put(_ context.Context, ref jobs.TaskRef) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refs = append(q.refs, ref)
	return nil
}

func TestDueSyncsAreStartedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, q, reg := &mailboxes{due: []string{"ann", "bob", "carol"}}, &putQueue{}, prometheus.NewRegistry()
		s, err := scheduler.NewSyncs(scheduler.SyncOptions{Store: m, Queue: q, Log: zap.NewNop(), Registerer: reg})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
		defer cancel()
		if err := s.Run(ctx); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		want := []jobs.TaskRef{{Job: "sync:ann", Epoch: 3}, {Job: "sync:carol", Epoch: 3}}
		slices.SortFunc(q.refs, func(a, b jobs.TaskRef) int { return strings.Compare(a.Job, b.Job) })
		if diff := cmp.Diff(want, q.refs); diff != "" {
			t.Errorf("put (-want +got):\n%s", diff)
		}
		if m.looks != 5 {
			t.Errorf("%d looks, want one at once and then one a second", m.looks)
		}
	})
}
