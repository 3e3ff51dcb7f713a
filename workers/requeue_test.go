package workers

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
)

func TestBackoffDoublesUpToAMinute(t *testing.T) {
	for _, tt := range []struct {
		first time.Duration
		n     int
		want  time.Duration
	}{
		{time.Second, 0, time.Second},
		{time.Second, 1, 2 * time.Second},
		{time.Second, 5, 32 * time.Second},
		{time.Second, 6, time.Minute},
		{time.Second, 1 << 30, time.Minute},
		{40 * time.Second, 1, time.Minute},
		{3 * time.Hour, 4, 3 * time.Hour}, // a moment that was named is not cut short
		{0, 3, 0},
	} {
		if got := backoff(tt.first, tt.n); got != tt.want {
			t.Errorf("backoff(%s, %d) = %s, want %s", tt.first, tt.n, got, tt.want)
		}
	}
}

// Asynq floors due times to whole seconds. At whichever fraction of a second a
// task is parked, it must not be due before its moment, nor two seconds after.
func TestParkDelayIsNeverEarlyAndHardlyLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 2000 {
			<-time.After(37 * time.Millisecond)
			for _, wait := range []time.Duration{0, time.Millisecond, 999 * time.Millisecond, 3800 * time.Millisecond, time.Minute} {
				moment := time.Now().Add(wait)
				due := time.Unix(time.Now().Add(requeueDelay(wait)).Unix(), 0)
				if late := due.Sub(moment); late <= 0-time.Nanosecond || late > 2*time.Second {
					t.Fatalf("a wait of %s is due %s after its moment, want 0 to 2s", wait, late)
				}
			}
		}
	})
}

func TestOnlyWaitingIsNoFailure(t *testing.T) {
	parked := &RequeueError{Job: "j", For: "user-minute"}
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{parked, false},
		{fmt.Errorf("wrapped: %w", parked), false},
		{nil, false},
		{errors.New("park job j: disk full"), true},
		{asynq.ErrLeaseExpired, true},
		{context.DeadlineExceeded, true},
	} {
		if got := isFailure(tt.err); got != tt.want {
			t.Errorf("isFailure(%v) = %t, want %t", tt.err, got, tt.want)
		}
	}
}

func TestRetryDelayFollowsTheMomentOrBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		within := func(err error, retried int, least, most time.Duration) {
			t.Helper()
			if got := retryDelay(time.Now)(retried, err, nil); got < least || got > most {
				t.Errorf("retryDelay(%d, %v) = %s, want %s to %s", retried, err, got, least, most)
			}
		}
		parked := &RequeueError{Job: "j", For: "user-minute", Until: time.Now().Add(10 * time.Second), Delay: 10 * time.Second}
		within(parked, 0, 11*time.Second, 12*time.Second)
		<-time.After(4 * time.Second) // what the last writes took is not waited for again
		within(fmt.Errorf("wrapped: %w", parked), 7, 7*time.Second, 8*time.Second)
		<-time.After(time.Hour)
		within(parked, 0, time.Second, time.Second)

		broken := errors.New("redis: connection refused")
		within(broken, 0, 2*time.Second, 2250*time.Millisecond)
		within(broken, 3, 9*time.Second, 10*time.Second)
		within(broken, 1000, 61*time.Second, 62*time.Second)
	})
}

func TestRequeueErrorNamesLimitAndMoment(t *testing.T) {
	err := &RequeueError{
		Job: "backfill:ann@example.com", For: "user-minute (ceiling)",
		Until: time.Date(2026, 11, 29, 20, 0, 3, 800e6, time.UTC), Delay: 3800 * time.Millisecond,
	}
	const want = "backfill:ann@example.com waits for user-minute (ceiling) until 2026-11-29T20:00:03.800Z (3.8s)"
	if got := err.Error(); got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}
