package storetest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"headroom/jobs"
)

var channelTests = []test{
	{"a new channel replaces the one before it", testAChannelIsReplacedByItsSuccessor},
	{"each message of a channel counts once", testAChannelsMessagesAreTakenOnce},
	{"calendars that can be read are to be watched", testCalendarsInStepAreToBeWatched},
	{"channels of calendars that leave are stopped", testChannelsOfCalendarsThatLeaveAreStopped},
}

var annsWork = jobs.WatchKey{Account: ann, Kind: jobs.WatchCalendar, Calendar: "work#1@group.calendar.google.com"}

// calendars is a store whose only job is the sync of Ann's calendars, claimed.
func calendars(t *T) (Store, jobs.TaskRef) {
	t.Helper()
	s := fresh(t)
	if err := s.AddAccount(t.Context(), jobs.Account{Email: ann, Project: "prod"}); err != nil {
		t.Fatal(err)
	}
	job, _, err := s.StartCalendarSync(t.Context(), ann)
	if err != nil {
		t.Fatal(err)
	}
	return s, must[jobs.Job](t)(s.Claim(t.Context(), job.Ref(), hour)).Ref()
}

// onList reads the list of Ann's calendars, on which her one calendar is, or was.
func onList(t *T, s Store, ref jobs.TaskRef, deleted bool) {
	t.Helper()
	ctx := t.Context()
	must[jobs.CalendarList](t)(s.BeginCalendars(ctx, ref))
	entry := jobs.CalendarEntry{Calendar: jobs.Calendar{ID: annsWork.Calendar, JSON: []byte("{}")}, Deleted: deleted}
	must[jobs.CalendarList](t)(s.ApplyCalendarList(ctx, ref, jobs.CalendarListPage{Calendars: []jobs.CalendarEntry{entry}, SyncToken: "l"}))
}

func channel(id string) jobs.Channel {
	hash := sha256.Sum256([]byte("token of " + id))
	return jobs.Channel{ID: id, WatchKey: annsWork, TokenHash: hash[:]}
}

func askedForCalendars(t *T, s Store) bool {
	t.Helper()
	return !must[jobs.CalendarList](t)(s.CalendarList(t.Context(), ann)).AskedAt.IsZero()
}

func testAChannelIsReplacedByItsSuccessor(t *T) {
	s, ref := calendars(t)
	ctx := t.Context()
	onList(t, s, ref, false)
	get := func(id string) jobs.Channel { return must[jobs.Channel](t)(s.Channel(ctx, id)) }
	stoppable := func() (ids []string) {
		for _, c := range must[[]jobs.Channel](t)(s.StoppableChannels(ctx, ann)) {
			ids = append(ids, c.ID)
		}
		return ids
	}
	made := func(id, resource string) {
		t.Helper()
		if err := s.AddChannel(ctx, ref, channel(id)); err != nil {
			t.Fatal(err)
		}
		if c := get(id); c.State != jobs.ChannelPending || c.WatchKey != annsWork || !slices.Equal(c.TokenHash, channel(id).TokenHash) {
			t.Errorf("before Google's answer: %+v", c)
		}
		if resource == "" {
			return // the answer is lost
		}
		c := channel(id)
		c.Resource = resource
		if err := s.ChannelMade(ctx, ref, c, hour, hour/2); err != nil {
			t.Fatal(err)
		}
	}
	made("one", "r1")
	if w := must[jobs.Watch](t)(s.Watch(ctx, annsWork)); w.State != jobs.WatchActive || w.Channel != "one" || w.ExpiresAt.Sub(w.RenewedAt) != hour {
		t.Errorf("watch = %+v", w)
	}
	made("two", "")
	if one, two := get("one"), get("two"); one.State != jobs.ChannelActive || two.State != jobs.ChannelPending || len(stoppable()) != 0 {
		t.Errorf("while the second is asked for: %+v, %+v, want the first in use", one, two)
	}
	made("three", "r1")
	if one, two := get("one"), get("two"); one.State != jobs.ChannelReplaced || two.State != jobs.ChannelReplaced {
		t.Errorf("after the third: %+v, %+v, want both replaced", one, two)
	}
	if got := stoppable(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("to be stopped: %q, want the one whose resource is known", got)
	}
	// The lost channel reports a change, which makes its resource known.
	if got := must[jobs.PushOutcome](t)(s.PushChannel(ctx, "two", "r2", 2, true)); got != jobs.PushReplaced {
		t.Errorf("a push on a replaced channel = %s", got)
	}
	if got := stoppable(); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("to be stopped: %q, want both", got)
	}
	if err := s.DropChannel(ctx, ref, "one"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Channel(ctx, "one"); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("a dropped channel: %v", err)
	}
}

func testAChannelsMessagesAreTakenOnce(t *T) {
	s, ref := calendars(t)
	ctx := t.Context()
	if err := s.AddChannel(ctx, ref, channel("one")); err != nil {
		t.Fatal(err)
	}
	push := func(id string, number uint64, changed bool) jobs.PushOutcome {
		t.Helper()
		return must[jobs.PushOutcome](t)(s.PushChannel(ctx, id, "r1", number, changed))
	}
	if got := push("one", 1, false); got != jobs.PushKnown || askedForCalendars(t, s) {
		t.Errorf("the first message = %s, which reports no change", got)
	}
	if got := push("one", 7, true); got != jobs.PushAsked || !askedForCalendars(t, s) {
		t.Errorf("a change = %s", got)
	}
	for _, number := range []uint64{1, 5, 7} {
		if got := push("one", number, true); got != jobs.PushRepeated {
			t.Errorf("message %d after the seventh = %s", number, got)
		}
	}
	if got := push("other", 1, true); got != jobs.PushUnknown {
		t.Errorf("a push on an unknown channel = %s", got)
	}
	if _, _, err := s.Cancel(ctx, ref.Job); err != nil {
		t.Fatal(err)
	}
	if got := push("one", 8, true); got != jobs.PushResting {
		t.Errorf("a push while the sync is to be cancelled = %s", got)
	}
}

func testCalendarsInStepAreToBeWatched(t *T) {
	s, ref := calendars(t)
	ctx := t.Context()
	annsList := jobs.WatchKey{Account: ann, Kind: jobs.WatchCalendarList}
	due := func() []jobs.WatchKey { return must[[]jobs.WatchKey](t)(s.DueChannels(ctx, ann)) }
	if got := due(); !slices.Equal(got, []jobs.WatchKey{annsList}) {
		t.Errorf("due before the first sync: %v, want the list", got)
	}
	onList(t, s, ref, false)
	if got := due(); !slices.Equal(got, []jobs.WatchKey{annsList, annsWork}) {
		t.Errorf("due with a calendar that was not read yet: %v, want both", got)
	}
	if err := s.RenewalFailed(ctx, ref, annsList, "no", 0); err != nil {
		t.Fatal(err)
	}
	if got := due(); !slices.Equal(got, []jobs.WatchKey{annsWork}) || !renewalAsked(t, s) || !askedForCalendars(t, s) {
		t.Errorf("due after a failure: %v, want the other, and a sync asked for it", got)
	}
	add := func(id string) {
		t.Helper()
		c := channel(id)
		c.Resource = "r"
		if err := s.AddChannel(ctx, ref, c); err != nil {
			t.Fatal(err)
		}
		if err := s.ChannelMade(ctx, ref, c, 0, hour); err != nil {
			t.Fatal(err)
		}
	}
	add("one")
	if got := due(); len(got) != 0 || renewalAsked(t, s) {
		t.Errorf("due when all is watched: %v", got)
	}
	// A calendar that leaves the list is watched no more, which is no lapse.
	onList(t, s, ref, true)
	if err := s.PruneWatches(ctx); err != nil {
		t.Fatal(err)
	}
	if lapsed := must[[]jobs.WatchKey](t)(s.LapseWatches(ctx)); len(lapsed) != 0 {
		t.Errorf("lapsed = %v", lapsed)
	}
	if w := must[jobs.Watch](t)(s.Watch(ctx, annsWork)); w.State != jobs.WatchNone {
		t.Errorf("watch of a calendar that is gone = %+v", w)
	}
}

// Stray channels are stopped too, up to a bound.
func testChannelsOfCalendarsThatLeaveAreStopped(t *T) {
	s, ref := calendars(t)
	ctx := t.Context()
	onList(t, s, ref, false)
	c := channel("one")
	c.Resource = "r1"
	if err := errors.Join(s.AddChannel(ctx, ref, c), s.ChannelMade(ctx, ref, c, hour, hour)); err != nil {
		t.Fatal(err)
	}
	stoppable := func() (ids []string) {
		for _, c := range must[[]jobs.Channel](t)(s.StoppableChannels(ctx, ann)) {
			ids = append(ids, c.ID)
		}
		return ids
	}
	if got := stoppable(); len(got) != 0 {
		t.Errorf("to be stopped: %q", got)
	}
	onList(t, s, ref, true)
	if got := stoppable(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("to be stopped: %q, want that of the calendar that has left", got)
	}
	if err := s.DropChannel(ctx, ref, "one"); err != nil {
		t.Fatal(err)
	}
	if w := must[jobs.Watch](t)(s.Watch(ctx, annsWork)); w.State != jobs.WatchNone {
		t.Errorf("watch without its channel = %+v", w)
	}
	for i := range 30 {
		stray := jobs.Channel{ID: fmt.Sprint("stray", i), Resource: "r", TokenHash: c.TokenHash, WatchKey: jobs.WatchKey{Account: "Ann@example.com"}}
		nobodys := jobs.Channel{ID: fmt.Sprint("nobody", i), Resource: "r", WatchKey: jobs.WatchKey{Account: "nobody@example.com"}}
		if err := errors.Join(s.AddStray(ctx, stray), s.AddStray(ctx, nobodys)); err != nil {
			t.Fatal(err)
		}
	}
	if got := stoppable(); len(got) != 10 {
		t.Errorf("%d strays to be stopped, want 10", len(got))
	}
	if got := must[jobs.PushOutcome](t)(s.PushChannel(ctx, "stray0", "r", 9, true)); got != jobs.PushUnknown || askedForCalendars(t, s) {
		t.Errorf("a push on a stray = %s", got)
	}
}
