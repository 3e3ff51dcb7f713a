package workers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headroom/jobs"
	"headroom/quota"
)

// watchedDiary has calendars that can be watched, with a fault of each attempt.
type watchedDiary struct {
	*memDiary
	err      error
	attempts int
	noted    map[string]bool // calendars whose failure was written down
	again    bool            // they are due again all the same
	reasons  []string        // why they could not be watched
}

type watchedCalendars struct {
	memCalendars
	shared *watchedDiary
}

func (w *watchedDiary) Calendar(ctx context.Context, a jobs.Account, lane quota.Lane, wait time.Duration) (Calendar, error) {
	return watchedCalendars{memCalendars{lane, w.memDiary}, w}, nil
}

func (c watchedCalendars) WatchCalendar(context.Context, string, string, string, string) (string, time.Time, bool, error) {
	c.shared.attempts++
	return "", time.Time{}, false, c.shared.err
}

func (c watchedCalendars) StopChannel(context.Context, string, string) error { return nil }

func (w *watchedDiary) DueChannels(context.Context, string) (due []jobs.WatchKey, err error) {
	for _, id := range w.ids {
		if w.noted[id] && !w.again {
			continue
		}
		due = append(due, jobs.WatchKey{Account: "ann@example.com", Kind: jobs.WatchCalendar, Calendar: id})
	}
	return due, nil
}

func (w *watchedDiary) RenewalFailed(_ context.Context, _ jobs.TaskRef, k jobs.WatchKey, reason string, _ time.Duration) error {
	w.reasons = append(w.reasons, reason)
	w.noted[k.Calendar] = true
	return nil
}

func (w *watchedDiary) WatchDue(context.Context, jobs.WatchKey) (bool, error) { return false, nil }
func (w *watchedDiary) Renewed(context.Context, jobs.TaskRef, jobs.WatchKey, time.Duration, time.Duration) error {
	return nil
}
func (w *watchedDiary) AddChannel(context.Context, jobs.TaskRef, jobs.Channel) error { return nil }
func (w *watchedDiary) ChannelMade(context.Context, jobs.TaskRef, jobs.Channel, time.Duration, time.Duration) error {
	return nil
}
func (w *watchedDiary) StoppableChannels(context.Context, string) ([]jobs.Channel, error) {
	return nil, nil
}
func (w *watchedDiary) DropChannel(context.Context, jobs.TaskRef, string) error { return nil }

// What is wrong with one calendar does not keep the others from being watched; what
// is wrong with the account is asked for once.
func TestWhatKeepsCalendarsFromBeingWatched(t *testing.T) {
	for _, row := range []struct {
		class    jobs.Class
		again    bool
		attempts int
	}{
		{jobs.ClassForbidden, false, 10}, {jobs.ClassGone, false, 10}, {jobs.ClassTransient, false, 10},
		{jobs.ClassTransient, true, 20}, // before the list is read, and after
		{jobs.ClassAccount, false, 1}, {jobs.ClassProject, false, 1}, {jobs.ClassQuota, false, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &watchedDiary{memDiary: newMemDiary(10), noted: map[string]bool{}, again: row.again,
				err: &jobs.CallError{Class: row.class, Err: errors.New("HTTP")}}
			if row.attempts == 1 {
				w.fault = on("list", w.err)
			}
			b := newCalendarRig(t, w, func(o *Options) {
				o.Watching = Watching{Store: w, Address: "https://headroom.example.com/push/calendar"}
			})
			var parked *RequeueError
			if err := b.slice(b.ref); err != nil && !errors.As(err, &parked) {
				t.Fatal(err)
			}
			if w.attempts != row.attempts || len(w.noted) != min(row.attempts, 10) {
				t.Errorf("%s: %d attempts, %d noted, want %d", row.class, w.attempts, len(w.noted), row.attempts)
			}
		})
	}
}

// Google quotes an address that it does not like, which may hold a password.
func TestTheAddressOfPushesIsShownWithoutItsPassword(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const address, shown = "https://ann:hunter2@headroom.example.com/", "https://ann:xxxxx@headroom.example.com/"
		w := &watchedDiary{memDiary: newMemDiary(1), noted: map[string]bool{},
			err: &jobs.CallError{Class: jobs.ClassForbidden, Err: errors.New("Unauthorized WebHook callback channel: " + address)}}
		b := newCalendarRig(t, w, func(o *Options) { o.Watching = Watching{Store: w, Address: address, Shown: shown} })
		var parked *RequeueError
		if err := b.slice(b.ref); err != nil && !errors.As(err, &parked) {
			t.Fatal(err)
		}
		if len(w.reasons) != 1 || strings.Contains(w.reasons[0], "hunter2") || !strings.Contains(w.reasons[0], shown) {
			t.Errorf("the watch failed for %q, want the address without its password", w.reasons)
		}
	})
}
