// Package memstore is a store in memory, for tests and simulations: it keeps jobs,
// messages, calendars, schedules and watches in maps, and passes the same suite as
// the other stores, [headroom/internal/store/storetest]. It starts no goroutines and
// opens no files, so that it works within a bubble of testing/synctest.
//
// It decides nothing: package jobs does. One lock makes every method a transaction.
// A method that fails has changed nothing.
//
// Limits: it serves one process, forgets everything with it, walks maps where a
// database has an index, and lacks the listings that only operators read.
package memstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"headroom/jobs"
)

// Options configures a [Store]. The zero value is fine.
type Options struct {
	NowFunc func() time.Time // the store's clock; time.Now if nil
	Watched []jobs.WatchKind // what workers have Google watch, which schedules see to
}

// Store is a store in memory. It is safe for concurrent use, and what it returns
// belongs to the caller.
type Store struct {
	opts Options

	mu       sync.Mutex
	accounts map[string]*account
	jobs     map[string]*job
	channels map[string]*channel
	pauses   []jobs.SchedulePause
	revision jobs.ScheduleRevision
}

// account is an account with what is stored of it.
type account struct {
	jobs.Account // the tenant as it was named

	cursor      *jobs.Cursor // nil: there is none
	messages    map[string]*jobs.Message
	attachments map[string]map[string]jobs.Attachment // by message and part
	labels      []jobs.Label
	snapshot    map[string][]string // labels by message

	list      *jobs.CalendarList // nil: a sync of calendars was never asked for
	calendars map[string]*calendar

	slots   map[jobs.Schedule]*jobs.Slot
	watches map[jobs.WatchKey]*jobs.Watch
}

// New returns an empty store.
func New(opts Options) *Store {
	if opts.NowFunc == nil {
		opts.NowFunc = time.Now
	}
	return &Store{opts: opts, accounts: map[string]*account{}, jobs: map[string]*job{}, channels: map[string]*channel{},
		revision: jobs.ScheduleRevision{Accounts: 1, Pauses: 1}}
}

// do runs fn alone, at a moment of the store's clock, which counts milliseconds.
func (s *Store) do(ctx context.Context, fn func(now time.Time) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return fn(truncate(s.opts.NowFunc()))
}

// owned runs fn for the owner of the slice that ref names, and saves what fn made of
// the job's row. Fn changes nothing else before its last error.
func (s *Store) owned(ctx context.Context, ref jobs.TaskRef, verb string, fn func(j *job, a *account, now time.Time) error) (jobs.Job, error) {
	var out jobs.Job
	err := s.do(ctx, func(now time.Time) error {
		j, err := s.job(ref.Job)
		if err != nil {
			return err
		}
		if err := j.OwnedBy(ref); err != nil {
			return err
		}
		before := j.Job
		if err := fn(j, s.accounts[j.Account], now); err != nil {
			j.Job = before
			return err
		}
		out = s.save(j, now)
		return nil
	})
	if err != nil {
		return jobs.Job{}, fmt.Errorf("%s of %s: %w", verb, ref.TaskID(), err)
	}
	return out, nil
}

// save marks a job's row as written, and returns it.
func (s *Store) save(j *job, now time.Time) jobs.Job {
	j.Touch(now)
	if j.ForgetsAsk() {
		s.forgetAsk(j)
	}
	return j.Job
}

func (s *Store) job(id string) (*job, error) {
	if j := s.jobs[id]; j != nil {
		return j, nil
	}
	return nil, fmt.Errorf("job %q: %w", id, jobs.ErrNotFound)
}

func (s *Store) account(email string) (*account, error) {
	if a := s.accounts[jobs.FoldAddress(email)]; a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("account %q: %w", email, jobs.ErrNotFound)
}

// sorted returns the values of a map in the order of their keys.
func sorted[K cmp.Ordered, V any](m map[K]V) []V {
	all := make([]V, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, m[k])
	}
	return all
}

func truncate(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// clean makes text from outside what a database keeps of it.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}
