package storetest

import (
	"slices"
	"time"

	"headroom/jobs"
)

var watchTests = []test{
	{"a push asks for a sync", testAPushAsksForASync},
	{"a push during a sync is followed by another sync", testAPushDuringASyncIsFollowedByAnother},
	{"a push does not start a stopped sync", testAPushWakesNoSyncThatRests},
	{"a watch is made, renewed and lapses", testAWatchIsMadeRenewedAndLapses},
	{"a renewal by hand need not be due", testRunByHandRenewsWhatIsNotDue},
	{"a kind that is not watched is not renewed", testNothingIsRenewedThatIsNotWatched},
	{"a cancel forgets a push", testCancelForgetsWhatWasAskedFor},
	{"a cancel forgets what was asked for of calendars", testCancelForgetsWhatWasAskedForOfCalendars},
}

var annsMail = jobs.WatchKey{Account: "ann@example.com", Kind: jobs.WatchMail}

// pushed takes a push for Ann's mailbox.
func pushed(t *T, s Store, historyID uint64) jobs.PushOutcome {
	t.Helper()
	return must[jobs.PushOutcome](t)(s.PushMail(t.Context(), "Ann@example.com", historyID))
}

func askedAt(t *T, s Store) time.Time {
	t.Helper()
	return must[jobs.Cursor](t)(s.Cursor(t.Context(), "ann@example.com")).AskedAt
}

// renewalAsked claims the next slot of Ann's watch-renewal, and reports whether a
// sync was asked for.
func renewalAsked(t *T, s Store) bool {
	t.Helper()
	ctx := t.Context()
	c := claim(jobs.ScheduleWatches, 0)
	c.Account = ann
	if err := s.InitSlots(ctx, []jobs.Slot{{Schedule: c.Schedule, Account: c.Account, Slot: c.After}}); err != nil {
		t.Fatal(err)
	}
	c.After = must[jobs.ScheduleSnapshot](t)(s.ScheduleSnapshot(ctx)).Slots[0].Slot
	c.Slot = c.After.Add(time.Hour)
	won := must[[]jobs.ClaimedSlot](t)(s.ClaimSlots(ctx, pauses(t, s), []jobs.SlotClaim{c}))
	return won[0].Won && won[0].Result == jobs.SlotAsked
}

// ended brings a sync to its end.
func ended(t *T, s Store, ref jobs.TaskRef) jobs.Job {
	t.Helper()
	ctx := t.Context()
	must[jobs.Cursor](t)(s.BeginSync(ctx, ref))
	if _, _, err := s.EndSync(ctx, ref); err != nil {
		t.Fatal(err)
	}
	return must[jobs.Job](t)(s.Finish(ctx, ref, jobs.Finish{State: jobs.Completed}))
}

func testAPushAsksForASync(t *T) {
	s, _, sync := synced(t)
	ended(t, s, sync)
	if got := pushed(t, s, 100); got != jobs.PushKnown || !askedAt(t, s).IsZero() {
		t.Errorf("a push of what the store has = %s, asked at %s", got, askedAt(t, s))
	}
	if got := pushed(t, s, 101); got != jobs.PushAsked || askedAt(t, s).IsZero() {
		t.Errorf("a push of a change = %s, asked at %s, want it asked", got, askedAt(t, s))
	}
	first := askedAt(t, s)
	if got := pushed(t, s, 102); got != jobs.PushAsked || askedAt(t, s) != first {
		t.Errorf("another push = %s, asked at %s, want it to be part of the first", got, askedAt(t, s))
	}
	if due := must[[]string](t)(s.DueSyncs(t.Context())); !slices.Equal(due, []string{"ann@example.com"}) {
		t.Errorf("due = %q, want Ann's sync", due)
	}
	if got := must[jobs.PushOutcome](t)(s.PushMail(t.Context(), "nobody@example.com", 5)); got != jobs.PushUnknown {
		t.Errorf("a push for nobody = %s", got)
	}
}

// It does not matter whether the sync still reads the history or already fetches
// messages.
func testAPushDuringASyncIsFollowedByAnother(t *T) {
	for _, read := range []bool{false, true} {
		s, _, sync := synced(t)
		ctx := t.Context()
		must[jobs.Cursor](t)(s.BeginSync(ctx, sync))
		if read {
			if _, _, err := s.EndSync(ctx, sync); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			if got := pushed(t, s, 101); got != jobs.PushAsked {
				t.Errorf("a push = %s", got)
			}
		}
		if !read {
			if _, _, err := s.EndSync(ctx, sync); err != nil {
				t.Fatal(err)
			}
		}
		job := must[jobs.Job](t)(s.Finish(ctx, sync, jobs.Finish{State: jobs.Completed}))
		due := must[[]string](t)(s.DueSyncs(ctx))
		if again := job.State.Live() || slices.Contains(due, "ann@example.com"); !again {
			t.Errorf("read %t: after the sync %+v nothing is due", read, job)
		}
	}
}

func testAPushWakesNoSyncThatRests(t *T) {
	for _, state := range []jobs.State{jobs.Paused, jobs.Cancelled, jobs.Blocked} {
		s, _, sync := synced(t)
		ctx := t.Context()
		switch state {
		case jobs.Paused:
			if _, _, err := s.Pause(ctx, sync.Job); err != nil {
				t.Fatal(err)
			}
		case jobs.Cancelled:
			if _, _, err := s.Cancel(ctx, sync.Job); err != nil {
				t.Fatal(err)
			}
		default:
			must[jobs.Job](t)(s.Finish(ctx, sync, jobs.Finish{State: state, Error: "no access"}))
		}
		if got := pushed(t, s, 101); got != jobs.PushResting || !askedAt(t, s).IsZero() {
			t.Errorf("a push for a sync that is %s = %s, asked at %s", state, got, askedAt(t, s))
		}
		if renewalAsked(t, s) {
			t.Errorf("%s: a sync was asked for a watch", state)
		}
	}
}

func testAWatchIsMadeRenewedAndLapses(t *T) {
	s, _, sync := synced(t)
	ctx := t.Context()
	watch := func() jobs.Watch { return must[jobs.Watch](t)(s.Watch(ctx, annsMail)) }
	due := func() bool { return must[bool](t)(s.WatchDue(ctx, annsMail)) }
	if w := watch(); w.State != jobs.WatchNone || !due() {
		t.Errorf("before the first: %+v", w)
	}
	if !renewalAsked(t, s) || askedAt(t, s).IsZero() {
		t.Error("no sync was asked for to make it")
	}
	must[jobs.Cursor](t)(s.BeginSync(ctx, sync))
	if err := s.RenewalFailed(ctx, sync, annsMail, "no permission", 0); err != nil {
		t.Fatal(err)
	}
	if w := watch(); w.Failures != 1 || w.LastError != "no permission" || due() || time.Until(w.NextTry) > time.Minute {
		t.Errorf("after a failure: %+v, want the next attempt within a minute", w)
	}
	if err := s.RenewalFailed(ctx, sync, annsMail, "quota", time.Hour); err != nil {
		t.Fatal(err)
	}
	if w := watch(); w.Failures != 1 || time.Until(w.NextTry) < 59*time.Minute || renewalAsked(t, s) {
		t.Errorf("after a refusal: %+v, want no failure and the wait that was asked", w)
	}
	if err := s.Renewed(ctx, sync, annsMail, time.Hour, time.Minute); err != nil {
		t.Fatal(err)
	}
	if w := watch(); w.State != jobs.WatchActive || w.Failures != 0 || w.LastError != "" || due() || renewalAsked(t, s) || w.ExpiresAt.Sub(w.RenewedAt) != time.Hour {
		t.Errorf("after it was made: %+v", w)
	}
	if lapsed := must[[]jobs.WatchKey](t)(s.LapseWatches(ctx)); len(lapsed) != 0 {
		t.Errorf("lapsed = %v", lapsed)
	}
	pushed(t, s, 90)
	if w := watch(); w.LastPushAt.IsZero() {
		t.Errorf("after a push: %+v", w)
	}
	if err := s.Renewed(ctx, sync, annsMail, 0, 0); err != nil {
		t.Fatal(err)
	}
	if lapsed := must[[]jobs.WatchKey](t)(s.LapseWatches(ctx)); !slices.Equal(lapsed, []jobs.WatchKey{annsMail}) {
		t.Errorf("lapsed = %v, want Ann's", lapsed)
	}
	if lapsed := must[[]jobs.WatchKey](t)(s.LapseWatches(ctx)); len(lapsed) != 0 {
		t.Errorf("it lapsed twice: %v", lapsed)
	}
	if n := must[map[jobs.WatchKind]map[jobs.WatchState]int](t)(s.CountWatches(ctx)); n[jobs.WatchMail][jobs.WatchLapsed] != 1 {
		t.Errorf("counted %v", n)
	}
	if !due() {
		t.Error("the lapsed watch is not due")
	}
	ended(t, s, sync)
	if err := s.Renewed(ctx, sync, annsMail, time.Hour, time.Hour); err == nil {
		t.Error("a sync that has ended wrote a watch")
	}
}

// That is needed, for instance, after the topic has changed.
func testRunByHandRenewsWhatIsNotDue(t *T) {
	s, _, sync := synced(t)
	ctx := t.Context()
	if err := s.Renewed(ctx, sync, annsMail, time.Hour, time.Hour); err != nil {
		t.Fatal(err)
	}
	ended(t, s, sync)
	if renewalAsked(t, s) {
		t.Error("the schedule renews what is not due")
	}
	if n := must[int](t)(s.RunSchedule(ctx, jobs.ScheduleWatches, []string{ann}, time.Now())); n != 1 || askedAt(t, s).IsZero() {
		t.Errorf("by hand: %d asked for", n)
	}
	if due := must[bool](t)(s.WatchDue(ctx, annsMail)); !due {
		t.Error("by hand, the watch is not due")
	}
}

// The settings of this store ask for no watches.
func testNothingIsRenewedThatIsNotWatched(t *T) {
	s := t.open(t, Options{Handles: 1, NowFunc: t.now})[0]
	addAccount(t, s, ann)
	pinned(t, s)
	if err := s.AskCalendarSync(t.Context(), ann, false); err != nil {
		t.Fatal(err)
	}
	if renewalAsked(t, s) {
		t.Error("a sync was asked for")
	}
}

// The sync that a push asked for does not begin, neither while the cancelled one ends
// nor after it.
func testCancelForgetsWhatWasAskedFor(t *T) {
	ctx := t.Context()
	for _, owned := range []bool{true, false} {
		s, _, sync := synced(t)
		must[jobs.Cursor](t)(s.BeginSync(ctx, sync))
		if !owned {
			if _, err := s.EndSlice(ctx, sync); err != nil {
				t.Fatal(err)
			}
		}
		if got := pushed(t, s, 101); got != jobs.PushAsked || askedAt(t, s).IsZero() {
			t.Fatalf("a push = %s", got)
		}
		must[jobs.Job](t)(first(s.Cancel(ctx, sync.Job)))
		if !askedAt(t, s).IsZero() {
			t.Error("it is still asked for")
		}
		if got := pushed(t, s, 102); got != jobs.PushResting {
			t.Errorf("a push after that = %s", got)
		}
		if renewalAsked(t, s) {
			t.Error("a renewal asked for it")
		}
		if owned {
			must[jobs.Job](t)(s.EndSlice(ctx, sync))
		}
		if due := must[[]string](t)(s.DueSyncs(ctx)); len(due) != 0 {
			t.Errorf("due = %q", due)
		}
		job, started, err := s.StartDueSync(ctx, ann)
		if err != nil || started || job.State != jobs.Cancelled {
			t.Errorf("who saw it due before starts it: %+v, %t, %v", job, started, err)
		}
		if _, started, err = s.StartSync(ctx, ann); err != nil || !started {
			t.Errorf("a person starts it: %t, %v", started, err)
		}
	}
}

func testCancelForgetsWhatWasAskedForOfCalendars(t *T) {
	s, ref := calendars(t)
	ctx := t.Context()
	if err := s.AskCalendarSync(ctx, ann, true); err != nil {
		t.Fatal(err)
	}
	must[jobs.Job](t)(first(s.Cancel(ctx, ref.Job)))
	if l := must[jobs.CalendarList](t)(s.CalendarList(ctx, ann)); !l.AskedAt.IsZero() || l.AskedAll {
		t.Errorf("it is still asked for: %+v", l)
	}
	if renewalAsked(t, s) {
		t.Error("a renewal asked for it")
	}
	must[jobs.Job](t)(s.EndSlice(ctx, ref))
	job, started, err := s.StartDueCalendarSync(ctx, ann)
	if err != nil || started || job.State != jobs.Cancelled {
		t.Errorf("who saw it due before starts it: %+v, %t, %v", job, started, err)
	}
	if _, started, err = s.StartCalendarSync(ctx, ann); err != nil || !started {
		t.Errorf("a person starts it: %t, %v", started, err)
	}
}

func first(j jobs.Job, _ bool, err error) (jobs.Job, error) { return j, err }
