package workers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"headroom/jobs"
	"headroom/quota"
)

// memCalendars is a Google with calendars in memory. Each has three pages.
type memCalendars struct {
	lane   quota.Lane
	shared *memDiary
}

type memDiary struct {
	ids   []string
	fault func(calendar, page string, lane quota.Lane) error // nil: all calls succeed

	mu             sync.Mutex
	calls          []string // "lane calendar page"
	inFlight, most int
}

func newMemDiary(calendars int) *memDiary {
	m := &memDiary{}
	for i := range calendars {
		m.ids = append(m.ids, fmt.Sprintf("c%02d", i))
	}
	return m
}

// list is a page with calendars, and the last of the list.
func list(ids ...string) jobs.CalendarListPage {
	page := jobs.CalendarListPage{SyncToken: "l"}
	for _, id := range ids {
		page.Calendars = append(page.Calendars, jobs.CalendarEntry{Calendar: jobs.Calendar{ID: id}})
	}
	return page
}

func (m *memDiary) Calendar(_ context.Context, _ jobs.Account, lane quota.Lane, _ time.Duration) (Calendar, error) {
	return memCalendars{lane, m}, nil
}

func (c memCalendars) Calendars(_ context.Context, _, _ string, use func(jobs.CalendarListPage) error) error {
	if f := c.shared.fault; f != nil {
		if err := f("list", "", c.lane); err != nil {
			return err
		}
	}
	return use(list(c.shared.ids...))
}

var memPages = map[string]jobs.EventPage{"": {Next: "p2", Events: make([]jobs.Event, 1)}, "p2": {Next: "p3", Events: make([]jobs.Event, 1)}, "p3": {SyncToken: "t"}}

func (c memCalendars) Events(ctx context.Context, calendar, _, page string, use func(jobs.EventPage) error) error {
	m := c.shared
	m.mu.Lock()
	m.calls = append(m.calls, strings.TrimSpace(string(c.lane)+" "+calendar+" "+page))
	m.inFlight++
	m.most = max(m.most, m.inFlight)
	m.mu.Unlock()
	defer func() { m.mu.Lock(); m.inFlight--; m.mu.Unlock() }()
	select {
	case <-time.After(500 * time.Millisecond):
	case <-ctx.Done():
		return ctx.Err()
	}
	if m.fault != nil {
		if err := m.fault(calendar, page, c.lane); err != nil {
			return err
		}
	}
	return use(memPages[page])
}

// newCalendarRig is a rig of lane sync with a job that syncs calendars, of which some
// were synced before.
func newCalendarRig(t *testing.T, m Calendars, change func(*Options), synced ...string) *rig {
	t.Helper()
	b := newRig(t, &memMailbox{}, func(o *Options) { o.Calendars, o.CalendarStore = m, o.Store.(*testStore) }, change)
	b.lane = quota.Sync
	if len(synced) > 0 {
		b.syncCalendars(synced)
	}
	b.ref = b.startCalendars()
	return b
}

func (b *rig) startCalendars() jobs.TaskRef {
	b.t.Helper()
	j, _, err := b.store.StartCalendarSync(b.t.Context(), ann)
	if err != nil {
		b.t.Fatal(err)
	}
	return j.Ref()
}

// syncCalendars reads calendars to their end, as a sync does.
func (b *rig) syncCalendars(ids []string) {
	b.t.Helper()
	ctx := b.t.Context()
	j, err := b.store.Claim(ctx, b.startCalendars(), time.Minute)
	if err == nil {
		_, err = b.store.ApplyCalendarList(ctx, j.Ref(), list(ids...))
	}
	for _, id := range ids {
		if err == nil {
			_, err = b.store.ApplyEvents(ctx, j.Ref(), id, jobs.EventPage{SyncToken: "t"})
		}
	}
	if err == nil {
		_, err = b.store.EndCalendars(ctx, j.Ref())
	}
	if err == nil {
		_, err = b.store.Finish(ctx, j.Ref(), jobs.Finish{State: jobs.Completed})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// calendars are ann's calendars by id, and how many are in which state.
func (b *rig) calendars() (byID map[string]jobs.Calendar, states map[jobs.CalendarState]int) {
	all, err := b.store.Calendars(context.Background(), ann)
	if err != nil {
		b.t.Error(err)
	}
	byID, states = map[string]jobs.Calendar{}, map[jobs.CalendarState]int{}
	for _, c := range all {
		byID[c.ID] = c
		states[c.State]++
	}
	return byID, states
}

// Changes come first, in lane sync, and whole calendars in lane backfill; at most
// four calendars are read at once, over as many slices as that takes, and no page
// twice.
func TestCalendarsAreReadFourAtOnceInTheirLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemDiary(20)
		b := newCalendarRig(t, m, noChange, "c18", "c19")
		if j := b.toEnd(); j.State != jobs.Completed || j.Slice < 1 {
			t.Errorf("job = %+v, want it completed over several slices", j)
		}
		if _, states := b.calendars(); m.most != calendarsAtOnce || states[jobs.CalendarSynced] != 20 {
			t.Errorf("%d in flight, states %v", m.most, states)
		}
		seen := map[string]bool{}
		for i, call := range m.calls {
			lane, _, _ := strings.Cut(call, " ")
			changes := strings.Contains(call, " c18") || strings.Contains(call, " c19")
			if want := map[bool]string{true: "sync", false: "backfill"}[changes]; lane != want || seen[call] || changes && strings.Count(call, " ") == 1 && i >= calendarsAtOnce {
				t.Errorf("call %d is %q; want it in lane %s, once, and changes first", i, call, want)
			}
			seen[call] = true
		}
	})
}

func TestWhatStopsACalendarAndWhatTheAccount(t *testing.T) {
	answer := func(class jobs.Class) error { return &jobs.CallError{Class: class, Err: errors.New("HTTP")} }
	for _, row := range []struct {
		name   string
		fault  func(calendar, page string, lane quota.Lane) error
		state  jobs.CalendarState // of c03
		synced int
		ends   jobs.State // "": it parks
		waits  string
	}{
		{"a calendar that is gone", on("c03", answer(jobs.ClassGone)), jobs.CalendarMissing, 9, jobs.Completed, ""},
		{"one that may not be read", on("c03", answer(jobs.ClassForbidden)), jobs.CalendarForbidden, 9, jobs.Completed, ""},
		{"one whose calls fail", on("c03", answer(jobs.ClassTransient)), jobs.CalendarFailing, 9, jobs.Completed, ""},
		{"one whose token is refused for ever", on("c03", answer(jobs.ClassExpired)), jobs.CalendarExpired, 9, jobs.Completed, ""},
		{"one whose page tokens never work", func(c, page string, _ quota.Lane) error {
			if c == "c03" && page != "" {
				return answer(jobs.ClassCursor)
			}
			return nil
		}, jobs.CalendarFailing, 9, jobs.Completed, ""},
		{"one whose answer blames the account", on("c03", answer(jobs.ClassAccount)), jobs.CalendarForbidden, 9, jobs.Completed, ""},
		{"one whose answer blames the project", on("c03", answer(jobs.ClassProject)), jobs.CalendarForbidden, 9, jobs.Completed, ""},
		{"the account", afterTheList(answer(jobs.ClassAccount)), jobs.CalendarNew, -1, jobs.Blocked, ""},
		{"an outage", func(c, _ string, _ quota.Lane) error {
			if c != "list" {
				return answer(jobs.ClassTransient)
			}
			return nil
		}, jobs.CalendarFailing, 0, "", "HTTP"},
		{"lane backfill", func(_, _ string, lane quota.Lane) error {
			if lane == quota.Backfill {
				return denied(time.Minute)
			}
			return nil
		}, jobs.CalendarNew, 0, "", "user-minute"},
		{"the list", on("list", answer(jobs.ClassTransient)), "", 0, "", "list the calendars of ann@example.com"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemDiary(10)
				m.fault = row.fault
				b := newCalendarRig(t, m, noChange)
				var parked *RequeueError
				for range 50 {
					if b.store.job(b.ref.Job).State.Terminal() || parked != nil {
						break
					}
					if err := b.slice(b.store.job(b.ref.Job).Ref()); err != nil && !errors.As(err, &parked) {
						t.Fatal(err)
					}
				}
				j := b.store.job(b.ref.Job)
				switch {
				case row.ends != "" && j.State != row.ends:
					t.Errorf("job = %+v, want it %s", j, row.ends)
				case row.ends == "" && (parked == nil || !strings.Contains(parked.For, row.waits)):
					t.Errorf("parked %v, want it to wait for %s; job %+v", parked, row.waits, j)
				case row.ends == "" && (j.Refusals > 0) != (row.waits == "user-minute"):
					t.Errorf("job = %+v: a refusal is none, or a fault is one", j)
				}
				all, states := b.calendars()
				if got := all["c03"].State; got != row.state || row.synced >= 0 && states[jobs.CalendarSynced] != row.synced {
					t.Errorf("c03 is %q, of all %v; want %q, and %d synced", got, states, row.state, row.synced)
				}
				if n := len(m.calls); n > 40 {
					t.Errorf("%d calls", n)
				}
			})
		})
	}
}

func noChange(*Options) {}

// on is a fault of all calls of one calendar.
func on(calendar string, err error) func(string, string, quota.Lane) error {
	return func(c, _ string, _ quota.Lane) error {
		if c == calendar {
			return err
		}
		return nil
	}
}

// afterTheList is a fault of all calls but the first of the list.
func afterTheList(err error) func(string, string, quota.Lane) error {
	var calls atomic.Int32
	return func(string, string, quota.Lane) error {
		if calls.Add(1) == 1 {
			return nil
		}
		return err
	}
}

func TestASyncOfCalendarsStopsWithTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemDiary(20)
		b := newCalendarRig(t, m, noChange)
		time.AfterFunc(700*time.Millisecond, func() { b.drain() })
		start := time.Now()
		if err := b.slice(b.ref); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 2*time.Second || len(m.calls) != 2*calendarsAtOnce {
			t.Errorf("it took %s and %d calls to stop", took, len(m.calls))
		}
		if j := b.store.job(b.ref.Job); j.State.Terminal() || j.Slice != 1 || len(b.queue.refs) != 1 {
			t.Errorf("job = %+v, tasks %v; want the next slice on the queue", j, b.queue.refs)
		}
		written := 0
		all, _ := b.calendars()
		for _, c := range all {
			written += int(c.Stream.Pages)
		}
		if written != len(m.calls) {
			t.Errorf("%d pages were written down of %d that were asked for", written, len(m.calls))
		}
	})
}
