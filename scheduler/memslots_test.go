package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"headroom/jobs"
	"headroom/scheduler"
)

// slotStore keeps slots in memory, with the one rule that matters: a claim wins
// only if it names the row's slot.
type slotStore struct {
	mu       sync.Mutex
	revision jobs.ScheduleRevision
	accounts []jobs.Account
	slots    map[string]jobs.Slot
	pauses   []jobs.SchedulePause
	won      []jobs.SlotClaim
	lost     int
	fail     error // returned by ClaimSlots when set
}

func newSlots(accounts ...string) *slotStore {
	s := &slotStore{slots: map[string]jobs.Slot{}}
	for _, a := range accounts {
		s.accounts = append(s.accounts, jobs.Account{Email: a, Tenant: "example.com"})
	}
	return s
}

func slotKey(s jobs.Schedule, account string) string { return string(s) + " " + account }

func (s *slotStore) ScheduleRevision(context.Context) (jobs.ScheduleRevision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision, nil
}

func (s *slotStore) ScheduleSnapshot(context.Context) (jobs.ScheduleSnapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return jobs.ScheduleSnapshot{Revision: s.revision, Accounts: slices.Clone(s.accounts), Pauses: slices.Clone(s.pauses),
		Slots: slices.Collect(maps.Values(s.slots))}, nil
}

func (s *slotStore) InitSlots(_ context.Context, slots []jobs.Slot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range slots {
		if _, ok := s.slots[slotKey(one.Schedule, one.Account)]; !ok {
			s.slots[slotKey(one.Schedule, one.Account)] = one
		}
	}
	return nil
}

func (s *slotStore) ClaimSlots(_ context.Context, pauses int64, claims []jobs.SlotClaim) ([]jobs.ClaimedSlot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return nil, s.fail
	}
	if pauses != s.revision.Pauses {
		return nil, jobs.ErrStale
	}
	var answers []jobs.ClaimedSlot
	for _, c := range claims {
		row, ok := s.slots[slotKey(c.Schedule, c.Account)]
		won := ok && row.Slot.Equal(c.After)
		if won {
			row.Slot, row.Spec, row.Missed = c.Slot, c.Spec, row.Missed+c.Missed
			s.slots[slotKey(c.Schedule, c.Account)] = row
			s.won = append(s.won, c)
		} else {
			s.lost++
		}
		answers = append(answers, jobs.ClaimedSlot{Won: won, Result: jobs.SlotAsked, Slot: row.Slot})
	}
	return answers, nil
}

// change changes the store as an operator's command does.
func (s *slotStore) change(do func(*slotStore)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do(s)
}

func (s *slotStore) pause(p jobs.SchedulePause) {
	s.change(func(s *slotStore) { p.PausedAt = time.Now(); s.pauses = append(s.pauses, p); s.revision.Pauses++ })
}

func (s *slotStore) resumeAll() {
	s.change(func(s *slotStore) {
		for i := range s.pauses {
			s.pauses[i].ResumedAt = time.Now()
		}
		s.revision.Pauses++
	})
}

// taken returns what was won since the last call.
func (s *slotStore) taken() (won []jobs.SlotClaim) {
	s.change(func(s *slotStore) { won, s.won = s.won, nil })
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
