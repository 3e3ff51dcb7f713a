package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/google"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/calendar"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/rig"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
	"headroom/quota"
)

const eventsList = "calendar.events.list"

// newCalendarSite is a site whose project has a price list for Calendar too.
func newCalendarSite(t *testing.T, o fakegoogle.Options) *site {
	t.Helper()
	r := newSiteOf(t, o, map[string]int{ann: 0})
	r.configure(func(cfg *config.Config) {
		project := cfg.Google.Projects[rig.Project]
		project.Prices = append(project.Prices, "calendar-2026-05")
		if o.CalendarUserLimit > 0 {
			project.Limits = map[string]config.Limits{"calendar-2026-05": {UserMinute: o.CalendarUserLimit}}
		}
		cfg.Google.Projects[rig.Project] = project
	})
	return r
}

// addCalendar makes a calendar of ann's with so many single events.
func (r *site) addCalendar(id string, events int) *calendar.Calendar {
	r.t.Helper()
	c, err := r.fake.AddCalendar(ann, calendar.Info{ID: id, TimeZone: "Europe/Berlin"})
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range events {
		r.add(c, calendar.Event{ID: fmt.Sprintf("single%05d", i), Summary: fmt.Sprint("event ", i)}, "2026-03-09T09:00:00+01:00", "2026-03-09T10:00:00+01:00")
	}
	return c
}

// add adds an event that lasts from start to end, which are dates or moments.
func (r *site) add(c *calendar.Calendar, e calendar.Event, start, end string) calendar.Event {
	r.t.Helper()
	e.Start, e.End = timeAt(start, e.Start), timeAt(end, e.Start)
	e, err := c.Add(e)
	if err != nil {
		r.t.Fatal(err)
	}
	return e
}

// timeAt is a time, in the zone of another where there is one.
func timeAt(text string, like *calendar.EventTime) *calendar.EventTime {
	if len(text) == len(time.DateOnly) {
		return &calendar.EventTime{Date: text}
	}
	t := &calendar.EventTime{DateTime: text}
	if like != nil {
		t.TimeZone = like.TimeZone
	}
	return t
}

// calendars asks for a sync of ann's calendars and waits for its end.
func (r *site) calendars(s *sqlite.Store) jobs.Job {
	r.t.Helper()
	asked, err := r.control().StartCalendarSync(r.t.Context(), ann)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.calendarsEnded(s, asked.Job.Epoch)
}

// calendarsEnded waits until the sync of an epoch, or a later one, is complete and
// none is asked for.
func (r *site) calendarsEnded(s *sqlite.Store, epoch int64) jobs.Job {
	r.t.Helper()
	var last jobs.Job
	for range 1500 {
		j, err := s.Job(r.t.Context(), jobs.CalendarID(ann))
		l, err2 := s.CalendarList(r.t.Context(), ann)
		if err == nil && err2 == nil && j.State.Terminal() && j.Epoch >= epoch && l.AskedAt.IsZero() {
			if j.State != jobs.Completed {
				r.t.Fatalf("the sync ended: %+v", j)
			}
			return j
		}
		last = j
		<-time.After(20 * time.Millisecond)
	}
	r.t.Fatalf("the sync of the calendars did not end: %+v", last)
	return jobs.Job{}
}

// inStep checks that the store holds what a calendar does, event by event as Google
// gives them.
func (r *site) inStep(s *sqlite.Store, id string) {
	r.t.Helper()
	want, got := map[string]string{}, map[string]string{}
	for _, e := range r.fake.Calendar(ann, id).Events() {
		text, err := json.Marshal(e)
		if err != nil {
			r.t.Fatal(err)
		}
		want[e.ID] = shown(r.t, text, e.Status == calendar.EventCancelled)
	}
	for after := ""; ; {
		page, err := s.Events(r.t.Context(), ann, id, jobs.EventQuery{After: after, Deleted: true})
		if err != nil {
			r.t.Fatal(err)
		}
		for _, e := range page {
			got[e.ID] = shown(r.t, e.JSON, e.Cancelled() || !e.DeletedAt.IsZero())
			after = e.ID
		}
		if len(page) < sqlite.DefaultPage {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Errorf("calendar %s (-Google's +store):\n%s", id, diff)
	}
}

// shown is an event's JSON with its fields in order, or that it is cancelled.
func shown(t *testing.T, text []byte, cancelled bool) string {
	t.Helper()
	if cancelled {
		return jobs.EventCancelled
	}
	var fields map[string]any
	err := json.Unmarshal(text, &fields)
	if err == nil {
		text, err = json.Marshal(fields)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// lists counts the calls of events.list.
func (r *site) lists() (events, calendars int64) {
	for _, c := range r.fake.CalendarMeter().Calendars {
		events += c.CallsByMethod[eventsList]
		calendars += c.CallsByMethod["calendar.calendarList.list"]
	}
	return events, calendars
}

// TestCalendarsEndToEnd: twelve calendars of which one is missing and one is not to
// be read; synced, synced again with one call each, and equal after each change.
func TestCalendarsEndToEnd(t *testing.T) {
	t.Parallel()
	r := newCalendarSite(t, fakegoogle.Options{Scale: scale})
	const holidays = "en.usa#holiday@group.v.calendar.google.com"
	ids := []string{holidays, "missing@example.com", "forbidden@example.com"}
	for i := range 8 {
		ids = append(ids, fmt.Sprintf("team%d@group.calendar.google.com", i))
	}
	for _, id := range ids {
		r.addCalendar(id, 3)
	}
	times := r.addCalendar(ann, 0)
	zoned := func(zone string) *calendar.EventTime { return &calendar.EventTime{TimeZone: zone} }
	weekly := []string{"RRULE:FREQ=WEEKLY"}
	r.add(times, calendar.Event{ID: "brisbane", Recurrence: weekly}, "2026-08-12", "2026-08-13")
	r.add(times, calendar.Event{ID: "newyork", Recurrence: weekly, Start: zoned("America/New_York")}, "2026-10-05T09:00:00-04:00", "2026-10-05T10:00:00-04:00")
	r.add(times, calendar.Event{ID: "berlin", Recurrence: weekly, Start: zoned("Europe/Berlin")}, "2018-03-11T09:00:00+01:00", "2018-03-11T10:00:00+01:00")
	moved := times.OccurrenceID("berlin", calendar.EventTime{DateTime: "2018-03-18T09:00:00+01:00"})
	if _, err := times.Move(moved, calendar.EventTime{DateTime: "2018-03-18T11:00:00+01:00"}); err != nil {
		t.Fatal(err)
	}
	if err := r.fake.Calendar(ann, "missing@example.com").SetAccess(calendar.AccessMissing); err != nil {
		t.Fatal(err)
	}
	if err := r.fake.Calendar(ann, "forbidden@example.com").SetAccess(calendar.AccessDenied); err != nil {
		t.Fatal(err)
	}
	a := r.run()
	s := a.Store()
	r.calendars(s)

	states := map[string]jobs.CalendarState{}
	all, err := s.Calendars(t.Context(), ann)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		states[c.ID] = c.State
		if c.State == jobs.CalendarSynced {
			r.inStep(s, c.ID)
		} else if c.Reason == "" {
			t.Errorf("calendar %s is %s without a reason", c.ID, c.State)
		}
	}
	if len(all) != 12 || states["missing@example.com"] != jobs.CalendarMissing || states["forbidden@example.com"] != jobs.CalendarForbidden ||
		states[holidays] != jobs.CalendarSynced || states[ann] != jobs.CalendarSynced {
		t.Errorf("states = %v", states)
	}

	// Asked for by a schedule or a push, two are left alone until their pause is over,
	// which on a slow machine may be during the sync.
	events, lists := r.lists()
	if events != 12 || lists != 1 {
		t.Errorf("the first sync made %d and %d calls, want one for each calendar and one for the list", events, lists)
	}
	if err := s.AskCalendarSync(t.Context(), ann, false); err != nil {
		t.Fatal(err)
	}
	r.calendarsEnded(s, 2)
	e, l := r.lists()
	want := int64(10)
	for _, c := range all {
		if c.State == jobs.CalendarSynced {
			continue
		}
		if now, err := s.Calendar(t.Context(), ann, c.ID); err != nil || now.Stream.Failures > c.Stream.Failures {
			want++
			if !c.Stream.Due(time.Now()) {
				t.Errorf("calendar %s was read again before its pause ended at %s (%v)", c.ID, c.Stream.NextTry, err)
			}
		}
	}
	if e-events != want || l-lists != 1 {
		t.Errorf("a sync with nothing new made %d and %d calls, want %d and 1", e-events, l-lists, want)
	}

	canceled := times.OccurrenceID("newyork", calendar.EventTime{DateTime: "2026-11-02T09:00:00-05:00"})
	for _, change := range []func() error{
		func() error { return times.Cancel(canceled) },
		func() error { return times.DeleteSeries("berlin") },
		func() error { return times.Delete("brisbane") },
		func() error { return r.fake.Calendar(ann, holidays).Cancel("single00001") },
		func() error {
			_, err := times.Add(calendar.Event{ID: "lunch0", Start: timeAt("2026-12-01T12:00:00Z", nil), End: timeAt("2026-12-01T13:00:00Z", nil)})
			return err
		},
		func() error {
			_, err := r.fake.Calendar(ann, ids[3]).Move("single00002", calendar.EventTime{DateTime: "2026-03-10T09:00:00+01:00"})
			return err
		},
		func() error { return r.fake.Calendar(ann, "missing@example.com").SetAccess(calendar.AccessReader) },
		func() error { return r.fake.Calendar(ann, ids[4]).SetAccess(calendar.AccessNone) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
	}
	r.calendars(s)
	for _, id := range []string{ann, holidays, ids[1], ids[3]} {
		r.inStep(s, id)
	}
	if c, err := s.Calendar(t.Context(), ann, ids[4]); err != nil || c.State != jobs.CalendarRemoved {
		t.Errorf("a calendar that left the list = %+v, %v", c, err)
	}
	if left, err := s.Events(t.Context(), ann, ids[4], jobs.EventQuery{}); err != nil || len(left) != 3 {
		t.Errorf("its events: %d, %v, want them kept", len(left), err)
	}
	if e, err := s.Events(t.Context(), ann, ann, jobs.EventQuery{After: canceled[:len(canceled)-1], Limit: 1}); err != nil || len(e) != 1 ||
		!e[0].Cancelled() || e[0].Series != "newyork" || !strings.HasPrefix(e[0].OriginalStart, "2026-11-02T") {
		t.Errorf("the cancelled occurrence = %+v, %v", e, err)
	}

	m := r.fake.CalendarMeter()
	if m.Refused() != 0 || m.OverLimit() != 0 || len(m.Users) != 1 || m.Users[0].User != google.QuotaUser(ann) {
		t.Errorf("the fake's meter: %d refused, %d over the limit, charged to %+v; want only %s", m.Refused(), m.OverLimit(), m.Users, google.QuotaUser(ann))
	}
}

// A worker that is killed while it waits for page 9 of 18 costs that page once
// more, and nothing else.
func TestAWorkerKilledAtPage9OfChanges(t *testing.T) {
	t.Parallel()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	r := newCalendarSite(t, fakegoogle.Options{Scale: scale})
	r.run(app.RoleScheduler)
	s := r.open()
	mine := r.addCalendar(ann, 0)
	first := r.worker(path)
	r.calendars(s)
	before, err := s.Calendar(t.Context(), ann, ann)
	if err != nil {
		t.Fatal(err)
	}
	events, lists := r.lists()

	const changes = 4465
	r.addCalendar(ann, changes)
	for _, f := range []fault.Fault{
		{Method: eventsList, Nth: 9, Hang: true},
		{Method: eventsList, Quirk: fault.Quirk{PageItems: 250}},
	} {
		if err := r.fake.AddFault(f); err != nil {
			t.Fatal(err)
		}
	}
	asked, err := r.control().StartCalendarSync(t.Context(), ann)
	if err != nil {
		t.Fatal(err)
	}
	for r.fake.Faults()[0].Applied == 0 {
		select {
		case <-t.Context().Done():
			t.Fatal("page 9 was not asked for")
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // "signal: killed"
	c, err := s.Calendar(t.Context(), ann, ann)
	if err != nil || c.Stream.Pages != 8 || c.Stream.SyncToken != before.Stream.SyncToken {
		t.Errorf("when the worker was killed: %+v, %v, want 8 pages and the token as it was", c, err)
	}
	r.worker(path)
	r.calendarsEnded(s, asked.Job.Epoch)
	e, l := r.lists()
	if e-events != 19 || l-lists != 1 {
		t.Errorf("%d and %d calls, want 19 pages (of 18) and one list", e-events, l-lists)
	}
	if c, err = s.Calendar(t.Context(), ann, ann); err != nil || c.State != jobs.CalendarSynced || c.Stream.SyncToken == before.Stream.SyncToken {
		t.Errorf("calendar = %+v, %v", c, err)
	}
	if len(mine.Events()) != changes {
		t.Fatalf("the calendar has %d events", len(mine.Events()))
	}
	r.inStep(s, ann)
}

// A sync token that Google refuses costs one full pass; what was deleted meanwhile
// becomes tombstones.
func TestARefusedSyncTokenCostsOneFullPass(t *testing.T) {
	t.Parallel()
	r := newCalendarSite(t, fakegoogle.Options{Scale: scale})
	mine, other := r.addCalendar(ann, 100), r.addCalendar("other@group.calendar.google.com", 1)
	a := r.run()
	s := a.Store()
	r.calendars(s)
	for round, expire := range []func() error{
		func() error { mine.ExpireTokens(false); return nil },
		func() error {
			return r.fake.AddFault(fault.Fault{Method: eventsList, Calendar: ann, User: ann, Nth: 1, Status: http.StatusGone, Reason: "updatedMinTooLongAgo"})
		},
		func() error { // its page tokens die once as well
			mine.ExpireTokens(false)
			return errors.Join(r.fake.AddFault(fault.Fault{Method: eventsList, Calendar: ann, User: ann, Nth: 3, Reason: "invalidPageToken"}),
				r.fake.AddFault(fault.Fault{Method: eventsList, Calendar: ann, User: ann, Count: 4, Quirk: fault.Quirk{PageItems: 50}}))
		},
	} {
		events, lists := r.lists()
		for i := range 10 {
			if err := mine.Delete(fmt.Sprintf("single%05d", 10*round+i)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 5 {
			r.add(mine, calendar.Event{ID: fmt.Sprintf("added%d%d", round, i)}, "2026-08-12", "2026-08-13")
		}
		if err := expire(); err != nil {
			t.Fatal(err)
		}
		r.calendars(s)
		c, err := s.Calendar(t.Context(), ann, ann)
		if err != nil || c.State != jobs.CalendarSynced || c.Stream.Resyncs != int64(round+1) || c.Stream.ResyncedAt.IsZero() {
			t.Errorf("round %d: %+v, %v, want it to show a full pass", round, c, err)
		}
		e, l := r.lists()
		if most := int64(3 + 4*(round/2)); e-events > most || l-lists != 1 { // refused, all, and the other calendar
			t.Errorf("round %d: %d and %d calls, want at most %d and 1", round, e-events, l-lists, most)
		}
		r.fake.ClearFaults()
		r.inStep(s, ann)
		tombstones := 0
		all, err := s.Events(t.Context(), ann, ann, jobs.EventQuery{Deleted: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			if !e.DeletedAt.IsZero() {
				tombstones++
			}
		}
		if tombstones != 10*(round+1) {
			t.Errorf("round %d: %d tombstones, want %d", round, tombstones, 10*(round+1))
		}
		r.calendars(s) // nothing new: ends what is counted as expiries in a row
		if e2, l2 := r.lists(); e2-e != 2 || l2-l != 1 {
			t.Errorf("round %d: the sync after it made %d and %d calls, want 2 and 1", round, e2-e, l2-l)
		}
	}

	// For ever: it backs off, and the other calendar goes on.
	mine.ExpireTokens(true)
	events, _ := r.lists()
	for i := range 5 {
		r.add(other, calendar.Event{ID: fmt.Sprint("other", i)}, "2026-08-12", "2026-08-13")
		if err := s.AskCalendarSync(t.Context(), ann, false); err != nil {
			t.Fatal(err)
		}
		j, err := s.Job(t.Context(), jobs.CalendarID(ann))
		if err != nil {
			t.Fatal(err)
		}
		r.calendarsEnded(s, j.Epoch+1)
		r.inStep(s, other.ID())
	}
	// The first sync is refused and reads all; the second is refused.
	if e, _ := r.lists(); e-events != 5+3 {
		t.Errorf("%d calls in 5 syncs, want 5 of the other calendar and 3 of the one whose token is refused for ever", e-events)
	}
	if c, err := s.Calendar(t.Context(), ann, ann); err != nil || c.State != jobs.CalendarExpired || !c.Stream.NextTry.After(time.Now()) {
		t.Errorf("calendar = %+v, %v, want it left alone for a while", c, err)
	}
}

// Calls of one calendar that fail hold up no other, and are made again.
func TestAFailingCalendarHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	r := newCalendarSite(t, fakegoogle.Options{Scale: scale})
	for i := range 6 {
		r.addCalendar(fmt.Sprintf("team%d@group.calendar.google.com", i), 5)
	}
	const bad = "team3@group.calendar.google.com"
	for _, f := range []fault.Fault{
		{Method: eventsList, Calendar: bad, User: ann, Count: 1, Status: 503},
		{Method: eventsList, Calendar: "team4@group.calendar.google.com", User: ann, Count: 3, Quirk: fault.Quirk{Page: fault.PageEmpty}},
	} {
		if err := r.fake.AddFault(f); err != nil {
			t.Fatal(err)
		}
	}
	a := r.run()
	s := a.Store()
	r.calendars(s)
	for i := range 6 {
		if id := fmt.Sprintf("team%d@group.calendar.google.com", i); id != bad {
			r.inStep(s, id)
		}
	}
	for range 1500 {
		if c, err := s.Calendar(t.Context(), ann, bad); err == nil && c.State == jobs.CalendarSynced {
			r.inStep(s, bad)
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	c, err := s.Calendar(t.Context(), ann, bad)
	t.Errorf("the calendar did not come back by itself: %+v, %v", c, err)
}

// TestAFirstSyncLeavesPeopleTheirQuota: pages of a first sync take no more than
// lane backfill may, so that somebody who edits events is never refused.
func TestAFirstSyncLeavesPeopleTheirQuota(t *testing.T) {
	t.Parallel()
	const limit = 60 // calls of a user in a minute, which is two seconds here
	r := newCalendarSite(t, fakegoogle.Options{Scale: scale, CalendarUserLimit: limit})
	r.addCalendar(ann, 100)
	if err := r.fake.AddFault(fault.Fault{Method: eventsList, Quirk: fault.Quirk{PageItems: 1}}); err != nil {
		t.Fatal(err)
	}
	a := r.run()
	s := a.Store()
	if _, err := r.control().StartCalendarSync(t.Context(), ann); err != nil {
		t.Fatal(err)
	}
	// A Redis that is new tells nobody what was spent before; pages wait for that.
	for pages := int64(0); pages == 0; <-time.After(10 * time.Millisecond) {
		if c, err := s.Calendar(t.Context(), ann, ann); err == nil {
			pages = c.Stream.Pages
		}
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var person sync.WaitGroup
	edits, refused := 0, 0
	client := &http.Client{Transport: &quota.Transport{Limiter: a.Ledger()}}
	defer client.CloseIdleConnections()
	person.Go(func() {
		for ctx.Err() == nil {
			status, err := r.edit(ctx, client)
			switch denied, ok := errors.AsType[*quota.DeniedError](err); {
			case ok:
				t.Logf("refused: %v", denied)
				refused++
			case err == nil && status != http.StatusOK:
				refused++
			case err == nil:
				edits++
			}
			select {
			case <-ctx.Done():
			case <-time.After(250 * time.Millisecond):
			}
		}
	})
	r.calendarsEnded(s, 0)
	stop()
	person.Wait()
	m := r.fake.CalendarMeter()
	if refused != 0 || edits == 0 || m.Refused() != 0 || m.OverLimit() != 0 {
		t.Errorf("%d edits, %d refused; the fake's meter: %d refused, %d over the limit", edits, refused, m.Refused(), m.OverLimit())
	}
	if most := m.User(google.QuotaUser(ann)).MostInWindow; most < limit/2 {
		t.Errorf("%d calls in a window at most: the sync took too little quota to prove anything", most)
	}
	t.Logf("%d edits", edits)
	r.fake.ClearFaults()
	r.calendars(s)
	r.inStep(s, ann)
}

// edit changes an event as a person's client would.
func (r *site) edit(ctx context.Context, client *http.Client) (status int, err error) {
	ctx = quota.WithCaller(ctx, quota.Caller{Project: "main", User: ann, Lane: quota.Interactive})
	url := r.cfg.Google.Endpoint.Reveal() + "/calendar/v3/calendars/primary/events/single00000?quotaUser=" + google.QuotaUser(ann)
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, url, strings.NewReader(`{"summary":"edited"}`))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+ann)
	request.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// TestARestoredEventIsBack: what Google says last is the truth, also where it has
// the date of change that it had before, in changes and in a reading of everything.
func TestARestoredEventIsBack(t *testing.T) {
	t.Parallel()
	r := newCalendarSite(t, fakegoogle.Options{Scale: scale})
	c := r.addCalendar(ann, 2)
	put := func(format string, args ...any) {
		t.Helper()
		if _, err := c.Put(json.RawMessage(fmt.Sprintf(format, args...))); err != nil {
			t.Fatal(err)
		}
	}
	const single = `{"id":"single00000","status":"confirmed","updated":"2025-01-01T00:00:00.000Z","summary":%q,` +
		`"start":{"dateTime":"2026-03-09T09:00:00+01:00"},"end":{"dateTime":"2026-03-09T10:00:00+01:00"}}`
	a := r.run()
	s := a.Store()
	r.calendars(s)
	for _, whole := range []bool{false, true} {
		sync := func() {
			t.Helper()
			r.calendars(s)
			r.inStep(s, ann)
		}
		if err := c.Cancel("single00000"); err != nil {
			t.Fatal(err)
		}
		sync()
		if all, err := s.Events(t.Context(), ann, ann, jobs.EventQuery{}); err != nil || len(all) != 1 {
			t.Fatalf("with one of two cancelled: %+v, %v", all, err)
		}
		put(single, "restored")
		if whole {
			c.ExpireTokens(false)
		}
		sync()
		if all, err := s.Events(t.Context(), ann, ann, jobs.EventQuery{}); err != nil || len(all) != 2 {
			t.Errorf("with it restored: %+v, %v", all, err)
		}
		put(strings.Replace(single, "2025-01-01", "2024-01-01", 1), "as it was long ago")
		sync()
	}
}
