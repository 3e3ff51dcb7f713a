package store_test

import (
	"crypto/sha256"
	"errors"
	"slices"
	"testing"

	"headroom/internal/store"
	"headroom/jobs"
)

var annsWork = jobs.WatchKey{Account: ann, Kind: jobs.WatchCalendar, Calendar: "work#1@group.calendar.google.com"}

// calendars is a store whose only job is the sync of Ann's calendars, claimed.
func calendars(t *testing.T) (*store.Store, jobs.TaskRef) {
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

func channel(id string) jobs.Channel {
	hash := sha256.Sum256([]byte("token of " + id))
	return jobs.Channel{ID: id, WatchKey: annsWork, TokenHash: hash[:]}
}

func askedForCalendars(t *testing.T, s *store.Store) bool {
	t.Helper()
	return !must[jobs.CalendarList](t)(s.CalendarList(t.Context(), ann)).AskedAt.IsZero()
}

func TestAChannelIsReplacedByItsSuccessor(t *testing.T) {
	s, ref := calendars(t)
	ctx := t.Context()
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
	// The lost one tells of a change, and so becomes known.
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

func TestAChannelsMessagesAreTakenOnce(t *testing.T) {
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
		t.Errorf("the first message = %s, which tells of no change", got)
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

func TestCalendarsInStepAreToBeWatched(t *testing.T) {
	s, ref := calendars(t)
	ctx := t.Context()
	if due := must[[]jobs.WatchKey](t)(s.DueChannels(ctx, ann)); len(due) != 0 {
		t.Errorf("due before the first sync: %v", due)
	}
	entry := jobs.CalendarEntry{Calendar: jobs.Calendar{ID: annsWork.Calendar, JSON: []byte("{}")}}
	must[jobs.CalendarList](t)(s.BeginCalendars(ctx, ref))
	must[jobs.CalendarList](t)(s.ApplyCalendarList(ctx, ref, jobs.CalendarListPage{Calendars: []jobs.CalendarEntry{entry}, SyncToken: "l"}))
	annsList := jobs.WatchKey{Account: ann, Kind: jobs.WatchCalendarList}
	if due := must[[]jobs.WatchKey](t)(s.DueChannels(ctx, ann)); !slices.Equal(due, []jobs.WatchKey{annsList}) {
		t.Errorf("due with a calendar that was not read yet: %v, want the list alone", due)
	}
	if n := must[int](t)(s.AskForChannels(ctx, 10)); n != 1 || !askedForCalendars(t, s) {
		t.Errorf("%d syncs asked for, want one for the list", n)
	}
	if n := must[int](t)(s.AskForChannels(ctx, 10)); n != 0 {
		t.Errorf("%d syncs asked for again at once", n)
	}
	if err := s.RenewalFailed(ctx, ref, annsList, "no", 0); err != nil {
		t.Fatal(err)
	}
	if due := must[[]jobs.WatchKey](t)(s.DueChannels(ctx, ann)); len(due) != 0 {
		t.Errorf("due after a failure: %v", due)
	}
}
