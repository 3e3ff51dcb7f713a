package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"headroom/internal/store/memstore"
	"headroom/jobs"
	"headroom/scheduler"
)

// slotStore is a store in memory that remembers claims, and can be made to fail them.
type slotStore struct {
	*memstore.Store

	mu   sync.Mutex
	won  []jobs.SlotClaim
	lost int
	fail error // returned by ClaimSlots when set
}

func newSlots(t *testing.T, accounts ...string) *slotStore {
	t.Helper()
	s := &slotStore{Store: memstore.New(memstore.Options{})}
	for _, email := range accounts {
		if err := s.AddAccount(t.Context(), jobs.Account{Email: email, Project: "p"}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *slotStore) ClaimSlots(ctx context.Context, pauses int64, claims []jobs.SlotClaim) ([]jobs.ClaimedSlot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return nil, s.fail
	}
	answers, err := s.Store.ClaimSlots(ctx, pauses, claims)
	for i, answer := range answers {
		if answer.Won {
			s.won = append(s.won, claims[i])
		} else {
			s.lost++
		}
	}
	return answers, err
}

// failWith makes ClaimSlots return err; nil ends that.
func (s *slotStore) failWith(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

// taken returns what was won since the last call.
func (s *slotStore) taken() (won []jobs.SlotClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	won, s.won = s.won, nil
	return won
}

// timings gives every account one schedule of mail.
func timings(t scheduler.Timing) func(jobs.Schedule, string, string) scheduler.Timing {
	return func(s jobs.Schedule, _, _ string) scheduler.Timing {
		if s != jobs.ScheduleMail {
			return scheduler.Timing{}
		}
		return t
	}
}

// A fleet is schedulers on one store, each a process that can die.
type fleet struct {
	t     *testing.T
	store *slotStore
	reg   *prometheus.Registry
	stops []func()
}

// launch starts a scheduler, which ticks at a moment of its own.
func (f *fleet) launch(timing func(jobs.Schedule, string, string) scheduler.Timing) {
	f.t.Helper()
	f.reg = prometheus.NewRegistry()
	s, err := scheduler.NewSchedules(scheduler.SchedulesOptions{Store: f.store, TimingFunc: timing, Log: zap.NewNop(), Registerer: f.reg})
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(f.t.Context())
	done := make(chan error, 1)
	delay := time.Duration(len(f.stops)) * 317 * time.Millisecond
	go func() {
		time.Sleep(delay) // in virtual time
		done <- s.Run(ctx)
	}()
	f.stops = append(f.stops, func() {
		cancel()
		if err := <-done; err != nil {
			f.t.Errorf("Run = %v, want nil", err)
		}
	})
}

// pause pauses schedules as an operator does.
func (f *fleet) pause(p jobs.SchedulePause) {
	f.t.Helper()
	if err := f.store.PauseSchedules(f.t.Context(), p); err != nil {
		f.t.Fatal(err)
	}
}

// resumeAll ends all pauses.
func (f *fleet) resumeAll() {
	f.t.Helper()
	snapshot, err := f.store.ScheduleSnapshot(f.t.Context())
	for _, p := range snapshot.Pauses {
		if err == nil && p.ResumedAt.IsZero() {
			err = f.store.ResumeSchedules(f.t.Context(), p)
		}
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// stop ends all of them.
func (f *fleet) stop() {
	for _, stop := range f.stops {
		stop()
	}
	f.stops = nil
}

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("user%05d@example.com", i)
	}
	return all
}

// until sleeps in virtual time.
func until(at time.Time) { time.Sleep(time.Until(at)) }

var errAway = errors.New("the store is away")

var noLog = zap.NewNop()

func newRegistry() *prometheus.Registry { return prometheus.NewRegistry() }
