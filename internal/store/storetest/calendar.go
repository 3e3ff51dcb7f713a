package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/jobs"
)

var calendarTests = []test{
	{"a full pass deletes events only when it is complete", testAFullPassDeletesOnlyWhenItIsComplete},
	{"a restarted pass deletes what only its first half listed", testARestartedPassDeletesWhatOnlyItsFirstHalfSaw},
	{"a tombstone with few fields keeps what was known", testThinTombstonesKeepWhatIsKnown},
	{"calendars leave the list and come back", testCalendarsLeaveTheListAndComeBack},
	{"at most one more calendar sync waits", testOneMoreSyncWaitsAtMost},
	{"a request wakes a sync that waits only for whole calendars", testAnAskWakesASyncThatWaitsForWholeCalendars},
	{"a failing calendar is left alone for a while", testTroubledCalendarsAreLeftAlone},
	{"a failing list of calendars is tried again", testATroubledListIsTriedAgain},
}

// calendarSync is a store in which the sync of ann's calendars has a claimed job.
type calendarSync struct {
	Store
	t   *T
	ref jobs.TaskRef
}

func newCalendarSync(t *T, ids ...string) *calendarSync {
	t.Helper()
	s := fresh(t)
	if err := s.AddAccount(t.Context(), jobs.Account{Email: ann, Project: "prod"}); err != nil {
		t.Fatal(err)
	}
	d := &calendarSync{Store: s, t: t}
	d.start()
	d.list("l1", ids...)
	return d
}

// start begins the next round.
func (d *calendarSync) start() {
	d.t.Helper()
	job, started, err := d.StartCalendarSync(d.t.Context(), "Ann@example.com")
	if err != nil || !started {
		d.t.Fatalf("StartCalendarSync = %+v, %t, %v", job, started, err)
	}
	d.ref = must[jobs.Job](d.t)(d.Claim(d.t.Context(), job.Ref(), hour)).Ref()
}

// end ends the round.
func (d *calendarSync) end() jobs.CalendarList {
	d.t.Helper()
	l := must[jobs.CalendarList](d.t)(d.EndCalendars(d.t.Context(), d.ref))
	must[jobs.Job](d.t)(d.Finish(d.t.Context(), d.ref, jobs.Finish{State: jobs.Completed}))
	return l
}

// list applies a last page of the list of calendars.
func (d *calendarSync) list(token string, ids ...string) jobs.CalendarList {
	d.t.Helper()
	page := jobs.CalendarListPage{SyncToken: token}
	for _, id := range ids {
		page.Calendars = append(page.Calendars, jobs.CalendarEntry{Calendar: jobs.Calendar{ID: id, Summary: id, JSON: json.RawMessage(`{}`)}})
	}
	return must[jobs.CalendarList](d.t)(d.ApplyCalendarList(d.t.Context(), d.ref, page))
}

// event is one as Google gives it; updated is seconds after a moment, negative
// for none.
func event(id, status string, updated int) jobs.Event {
	e := jobs.Event{ID: id, Status: status, ICalUID: id + "@google.com"}
	if updated >= 0 {
		e.Updated = time.UnixMilli(1_700_000_000_000 + 1000*int64(updated)).UTC()
	}
	e.JSON = json.RawMessage(fmt.Sprintf(`{"id":%q,"status":%q,"summary":"v%d"}`, id, status, updated))
	return e
}

// stub is a tombstone with few fields.
func stub(id string) jobs.Event {
	return jobs.Event{ID: id, Status: jobs.EventCancelled, JSON: json.RawMessage(fmt.Sprintf(`{"id":%q,"status":"cancelled"}`, id))}
}

func occurrence(e jobs.Event, series, start string) jobs.Event {
	e.Series, e.OriginalStart = series, start
	return e
}

func (d *calendarSync) apply(calendar string, page jobs.EventPage) jobs.Calendar {
	d.t.Helper()
	return must[jobs.Calendar](d.t)(d.ApplyEvents(d.t.Context(), d.ref, calendar, page))
}

// events says what became of each of a calendar's events.
func (d *calendarSync) events(calendar string) map[string]string {
	d.t.Helper()
	got := map[string]string{}
	for _, e := range must[[]jobs.Event](d.t)(d.Events(d.t.Context(), ann, calendar, jobs.EventQuery{Deleted: true})) {
		var fields struct{ Summary string }
		if err := json.Unmarshal(e.JSON, &fields); err != nil {
			d.t.Fatal(err)
		}
		got[e.ID] = e.Status + " " + fields.Summary
		if !e.DeletedAt.IsZero() {
			got[e.ID] += " deleted"
		}
	}
	live := must[[]jobs.Event](d.t)(d.Events(d.t.Context(), ann, calendar, jobs.EventQuery{}))
	if slices.ContainsFunc(live, func(e jobs.Event) bool { return !e.DeletedAt.IsZero() }) {
		d.t.Errorf("a tombstone is among the live events: %+v", live)
	}
	return got
}

func (d *calendarSync) want(calendar string, want map[string]string) {
	d.t.Helper()
	if diff := cmp.Diff(want, d.events(calendar)); diff != "" {
		d.t.Errorf("events of %s (-want +got):\n%s", calendar, diff)
	}
}

// An incomplete pass deletes nothing, and its last page has the sync token.
func testAFullPassDeletesOnlyWhenItIsComplete(t *T) {
	d := newCalendarSync(t, "c")
	d.apply("c", jobs.EventPage{Events: []jobs.Event{event("a", "confirmed", 1), event("b", "confirmed", 1)}, Next: "p2"})
	c := d.apply("c", jobs.EventPage{Events: []jobs.Event{event("c", "confirmed", 1)}, SyncToken: "t1"})
	if c.State != jobs.CalendarSynced || c.Stream.Token() != "t1" {
		t.Fatalf("after the first pass: %+v", c)
	}
	c = must[jobs.Calendar](t)(d.ExpireCalendar(t.Context(), d.ref, "c", "fullSyncRequired"))
	if c.State != jobs.CalendarExpired || c.Reason != "fullSyncRequired" || c.Stream.Token() != "" {
		t.Errorf("expired: %+v", c)
	}
	c = d.apply("c", jobs.EventPage{Events: []jobs.Event{event("d", "confirmed", 2)}, Next: "p2"})
	if c.Stream.PageToken != "p2" || c.State != jobs.CalendarExpired {
		t.Errorf("between two pages: %+v", c)
	}
	d.want("c", map[string]string{"a": "confirmed v1", "b": "confirmed v1", "c": "confirmed v1", "d": "confirmed v2"})
	d.apply("c", jobs.EventPage{Next: "p3"}) // an empty page
	c = d.apply("c", jobs.EventPage{Events: []jobs.Event{event("a", "confirmed", 1)}, SyncToken: "t2"})
	if c.State != jobs.CalendarSynced || c.Stream.Resyncs != 1 || c.Stream.ResyncedAt.IsZero() || c.Reason != "" {
		t.Errorf("after the full pass: %+v", c)
	}
	d.want("c", map[string]string{"a": "confirmed v1", "b": "confirmed v1 deleted", "c": "confirmed v1 deleted", "d": "confirmed v2"})
	d.apply("c", jobs.EventPage{Events: []jobs.Event{event("b", "confirmed", 1)}, SyncToken: "t3"})
	if got := d.events("c")["b"]; got != "confirmed v1" {
		t.Errorf("an event that is back is %q", got)
	}
}

func testARestartedPassDeletesWhatOnlyItsFirstHalfSaw(t *T) {
	d := newCalendarSync(t, "c")
	d.apply("c", jobs.EventPage{Events: []jobs.Event{event("a", "confirmed", 1), event("b", "confirmed", 1)}, Next: "p2"})
	must[jobs.Calendar](t)(d.RestartCalendar(t.Context(), d.ref, "c", "invalid page token"))
	c := d.apply("c", jobs.EventPage{Events: []jobs.Event{event("b", "confirmed", 1)}, SyncToken: "t"})
	if c.State != jobs.CalendarSynced {
		t.Errorf("calendar = %+v", c)
	}
	d.want("c", map[string]string{"a": "confirmed v1 deleted", "b": "confirmed v1"})
}

func testThinTombstonesKeepWhatIsKnown(t *T) {
	seriesOf := func(id string, updated int) jobs.Event {
		e := event(id, "confirmed", updated)
		e.JSON = json.RawMessage(fmt.Sprintf(`{"id":%q,"status":"confirmed","summary":"v%d","recurrence":["RRULE:FREQ=DAILY"]}`, id, updated))
		return e
	}
	const first = "m_20260310T150000Z"
	for _, row := range []struct {
		name  string
		pages []jobs.EventPage
		want  map[string]string
	}{
		{"a single event", []jobs.EventPage{{Events: []jobs.Event{event("a", "confirmed", 1)}}, {Events: []jobs.Event{stub("a")}}},
			map[string]string{"a": "cancelled v1 deleted"}},
		{"one that was never seen", []jobs.EventPage{{Events: []jobs.Event{stub("a")}}}, map[string]string{"a": "cancelled  deleted"}},
		{"restored with its former date", []jobs.EventPage{{Events: []jobs.Event{event("a", "confirmed", 1)}},
			{Events: []jobs.Event{stub("a")}, Updated: event("", "", 5).Updated}, {Events: []jobs.Event{event("a", "confirmed", 1)}}},
			map[string]string{"a": "confirmed v1"}},
		{"restored on the same page", []jobs.EventPage{{Events: []jobs.Event{event("a", "confirmed", 3), stub("a"), event("a", "confirmed", 2)}}},
			map[string]string{"a": "confirmed v2"}},
		{"put back to an older version", []jobs.EventPage{{Events: []jobs.Event{event("a", "confirmed", 6)}}, {Events: []jobs.Event{event("a", "confirmed", 4)}}},
			map[string]string{"a": "confirmed v4"}},
		{"a newer full copy after it", []jobs.EventPage{{Events: []jobs.Event{event("a", "confirmed", 1)}},
			{Events: []jobs.Event{stub("a")}, Updated: event("", "", 5).Updated}, {Events: []jobs.Event{event("a", "confirmed", 6)}}},
			map[string]string{"a": "confirmed v6"}},
		{"an occurrence, with the series known", []jobs.EventPage{{Events: []jobs.Event{seriesOf("m", 1)}},
			{Events: []jobs.Event{occurrence(stub(first), "m", "2026-03-10T15:00:00Z")}}},
			map[string]string{"m": "confirmed v1", first: "cancelled "}},
		{"an occurrence that says nothing of its series", []jobs.EventPage{{Events: []jobs.Event{seriesOf("m", 1)}}, {Events: []jobs.Event{stub(first)}}},
			map[string]string{"m": "confirmed v1", first: "cancelled "}},
		{"an occurrence before its series", []jobs.EventPage{{Events: []jobs.Event{occurrence(stub(first), "m", "2026-03-10T15:00:00Z"), seriesOf("m", 1)}}},
			map[string]string{"m": "confirmed v1", first: "cancelled "}},
		{"an occurrence that says nothing of its series, which comes later", []jobs.EventPage{{Events: []jobs.Event{stub(first), stub("m_x")}},
			{Events: []jobs.Event{seriesOf("m", 1)}}}, map[string]string{"m": "confirmed v1", first: "cancelled ", "m_x": "cancelled  deleted"}},
		{"a series with an occurrence that was moved", []jobs.EventPage{
			{Events: []jobs.Event{seriesOf("m", 1), occurrence(event(first, "confirmed", 2), "m", "2026-03-10T15:00:00Z")}}, {Events: []jobs.Event{stub("m")}}},
			map[string]string{"m": "cancelled v1 deleted", first: "confirmed v2 deleted"}},
	} {
		t.Run(row.name, func(t *T) {
			d := newCalendarSync(t, "c")
			for i, page := range row.pages {
				page.SyncToken = fmt.Sprint("t", i)
				d.apply("c", page)
				if i > 0 {
					continue
				}
				d.apply("c", page) // a page that came twice, after a crash
			}
			d.want("c", row.want)
			for _, e := range must[[]jobs.Event](t)(d.Events(t.Context(), ann, "c", jobs.EventQuery{Deleted: true})) {
				if e.ID == first && (e.Series != "m" || e.OriginalStart != "2026-03-10T15:00:00Z") {
					t.Errorf("the occurrence = %+v, want series and original start", e)
				}
			}
		})
	}
}

func testCalendarsLeaveTheListAndComeBack(t *T) {
	d := newCalendarSync(t, "a", "b")
	for _, id := range []string{"a", "b"} {
		d.apply(id, jobs.EventPage{Events: []jobs.Event{event("e", "confirmed", 1)}, SyncToken: "t"})
	}
	states := func() map[string]jobs.CalendarState {
		got := map[string]jobs.CalendarState{}
		for _, c := range must[[]jobs.Calendar](t)(d.Calendars(t.Context(), ann)) {
			got[c.ID] = c.State
		}
		return got
	}
	d.end()
	d.start()
	must[jobs.CalendarList](t)(d.ApplyCalendarList(t.Context(), d.ref, jobs.CalendarListPage{SyncToken: "l2",
		Calendars: []jobs.CalendarEntry{{Calendar: jobs.Calendar{ID: "b"}, Deleted: true}, {Calendar: jobs.Calendar{ID: "never"}, Deleted: true}}}))
	if diff := cmp.Diff(map[string]jobs.CalendarState{"a": jobs.CalendarSynced, "b": jobs.CalendarRemoved}, states()); diff != "" {
		t.Errorf("one was taken off (-want +got):\n%s", diff)
	}
	d.want("b", map[string]string{"e": "confirmed v1"})
	if all := must[[]jobs.Calendar](t)(d.RoundCalendars(t.Context(), d.ref)); len(all) != 1 || all[0].ID != "a" {
		t.Errorf("to be read: %+v, want a", all)
	}
	d.list("l3", "b")
	if got := states()["b"]; got != jobs.CalendarSynced {
		t.Errorf("back on the list it is %s", got)
	}
	must[jobs.CalendarList](t)(d.ExpireCalendarList(t.Context(), d.ref))
	if l := d.list("l4", "b", "c"); l.Stream.Resyncs != 1 {
		t.Errorf("list = %+v, want one resync", l)
	}
	if diff := cmp.Diff(map[string]jobs.CalendarState{"a": jobs.CalendarRemoved, "b": jobs.CalendarSynced, "c": jobs.CalendarNew}, states()); diff != "" {
		t.Errorf("the whole list was read (-want +got):\n%s", diff)
	}
}

func testOneMoreSyncWaitsAtMost(t *T) {
	d := newCalendarSync(t, "c")
	ctx := t.Context()
	due := func(want ...string) {
		t.Helper()
		if got := must[[]string](t)(d.DueCalendarSyncs(ctx)); !slices.Equal(got, want) {
			t.Errorf("due: %q, want %q", got, want)
		}
	}
	due()
	for range 3 {
		if err := d.AskCalendarSync(ctx, "Ann@example.com", false); err != nil {
			t.Fatal(err)
		}
	}
	due() // while it runs
	d.apply("c", jobs.EventPage{SyncToken: "t"})
	d.end()
	due(ann)
	job, started, err := d.StartDueCalendarSync(ctx, ann)
	if err != nil || !started {
		t.Fatalf("StartDueCalendarSync = %+v, %t, %v", job, started, err)
	}
	due()
	if again, started, err := d.StartDueCalendarSync(ctx, ann); err != nil || started || again.Epoch != job.Epoch {
		t.Errorf("of two schedulers the second = %+v, %t, %v", again, started, err)
	}
	if err := d.AskCalendarSync(ctx, "nobody@example.com", false); err == nil {
		t.Error("an unknown account was asked for")
	}
}

// A first sync may wait for hours in lane backfill. What has changed in the other
// calendars does not wait with it.
func testAnAskWakesASyncThatWaitsForWholeCalendars(t *T) {
	for _, row := range []struct {
		name  string
		park  jobs.Park
		left  bool // changes are left to be read
		wakes bool
	}{
		{"for quota, with whole calendars left", jobs.Park{For: "user-minute", Until: time.Now().Add(hour), Refused: true}, false, true},
		{"for quota, with changes left", jobs.Park{For: "user-minute", Until: time.Now().Add(hour), Refused: true}, true, false},
		{"after a fault", jobs.Park{For: "503", Until: time.Now().Add(hour), Failure: "503"}, false, false},
	} {
		t.Run(row.name, func(t *T) {
			d := newCalendarSync(t, "new", "old")
			ctx := t.Context()
			d.apply("old", jobs.EventPage{SyncToken: "t"})
			must[jobs.Calendar](t)(d.MarkCalendar(ctx, d.ref, "new", jobs.CalendarFailing, "503"))
			d.end()
			d.start()
			d.list("l2")
			if !row.left {
				d.apply("old", jobs.EventPage{SyncToken: "t2"})
			}
			parked := must[jobs.Job](t)(d.Park(ctx, d.ref, row.park))
			if err := d.AskCalendarSync(ctx, ann, false); err != nil {
				t.Fatal(err)
			}
			if due := must[[]string](t)(d.DueCalendarSyncs(ctx)); (len(due) == 1) != row.wakes {
				t.Errorf("due: %q, wakes should be %t", due, row.wakes)
			}
			job, started, err := d.StartDueCalendarSync(ctx, ann)
			if err != nil || started != row.wakes {
				t.Fatalf("StartDueCalendarSync = %+v, %t, %v", job, started, err)
			}
			if !row.wakes {
				return
			}
			if job.Epoch != parked.Epoch+1 || job.State != jobs.Queued {
				t.Errorf("woken: %+v, want the next epoch, so that the task it waited in is void", job)
			}
			d.ref = must[jobs.Job](t)(d.Claim(ctx, job.Ref(), hour)).Ref()
			d.list("l3")
			if all := must[[]jobs.Calendar](t)(d.RoundCalendars(ctx, d.ref)); len(all) != 2 || all[0].ID != "old" {
				t.Errorf("to be read: %+v, want old, and then new", all)
			}
		})
	}
}

// A calendar that fails is left alone, and tried again by itself only if that may help.
func testTroubledCalendarsAreLeftAlone(t *T) {
	for _, row := range []struct {
		state   jobs.CalendarState
		resumes bool
	}{{jobs.CalendarMissing, false}, {jobs.CalendarForbidden, false}, {jobs.CalendarFailing, true}} {
		t.Run(string(row.state), func(t *T) {
			d := newCalendarSync(t, "good", "bad")
			ctx := t.Context()
			c := must[jobs.Calendar](t)(d.MarkCalendar(ctx, d.ref, "bad", row.state, "HTTP 404"))
			if c.State != row.state || c.Reason != "HTTP 404" || c.Stream.NextTry.IsZero() {
				t.Errorf("marked: %+v", c)
			}
			d.apply("good", jobs.EventPage{SyncToken: "t"})
			if all := must[[]jobs.Calendar](t)(d.RoundCalendars(ctx, d.ref)); len(all) != 0 {
				t.Errorf("to be read: %+v, want none", all)
			}
			if l := d.end(); l.ResumeAt.IsZero() == row.resumes || l.SyncedAt.IsZero() {
				t.Errorf("list = %+v, resumes should be %t", l, row.resumes)
			}
			if err := d.AskCalendarSync(ctx, ann, true); err != nil {
				t.Fatal(err)
			}
			job, _, err := d.StartDueCalendarSync(ctx, ann)
			if err != nil {
				t.Fatal(err)
			}
			d.ref = must[jobs.Job](t)(d.Claim(ctx, job.Ref(), hour)).Ref()
			all := must[[]jobs.Calendar](t)(d.RoundCalendars(ctx, d.ref))
			if len(all) != 1 || all[0].ID != "good" || all[0].Stream.Pass != jobs.PassAsked || all[0].Stream.SyncToken != "t" {
				t.Errorf("to be read: %+v, want all of good, and bad left alone", all)
			}
			d.end()
			d.start() // a person's
			if all := must[[]jobs.Calendar](t)(d.RoundCalendars(ctx, d.ref)); len(all) != 2 {
				t.Errorf("to be read: %+v, want both", all)
			}
		})
	}
}

// A list of calendars whose token is refused again and again is left alone for a
// while, and the sync goes on by itself then.
func testATroubledListIsTriedAgain(t *T) {
	d := newCalendarSync(t, "c")
	d.apply("c", jobs.EventPage{SyncToken: "t"})
	if l := d.end(); !l.ResumeAt.IsZero() {
		t.Errorf("without failures: %+v", l)
	}
	d.start()
	var next time.Time
	for range 2 {
		next = must[jobs.CalendarList](t)(d.ExpireCalendarList(t.Context(), d.ref)).Stream.NextTry
	}
	d.apply("c", jobs.EventPage{SyncToken: "t2"})
	if l := d.end(); next.IsZero() || !l.ResumeAt.Equal(next) {
		t.Errorf("list = %+v, want the next sync at %s", l, next)
	}
}
