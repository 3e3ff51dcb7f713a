package jobs_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"headroom/jobs"
)

func TestPasses(t *testing.T) {
	call := func(c jobs.Class, reason string) error {
		return fmt.Errorf("list: %w", &jobs.CallError{Class: c, Reason: reason, Err: errors.New("x")})
	}
	for _, tt := range []struct {
		name string
		err  error
		want bool
	}{
		{"the network", call(jobs.ClassTransient, "network"), true},
		{"a server's fault", call(jobs.ClassTransient, "backendError"), true},
		{"a precondition that somebody may have to meet", call(jobs.ClassTransient, "failedPrecondition"), false},
		{"a project's cause", call(jobs.ClassProject, "invalid_grant"), true},
		{"quota", call(jobs.ClassQuota, "rateLimitExceeded"), true},
		{"concurrency", call(jobs.ClassConcurrency, "rateLimitExceeded"), true},
		{"an account's cause", call(jobs.ClassAccount, "invalid_grant"), false},
		{"a page token that does not work", call(jobs.ClassCursor, "invalidPageToken"), false},
		{"a search that makes no sense", call(jobs.ClassSearch, "badRequest"), false},
		{"the store", errors.New("no space left on device"), true},
		{"a fault of ours", fmt.Errorf("panic: %w", jobs.ErrPersists), false},
	} {
		if got := jobs.Passes(tt.err); got != tt.want {
			t.Errorf("%s: Passes = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestGivesUp(t *testing.T) {
	network := &jobs.CallError{Class: jobs.ClassTransient, Reason: "network", Err: errors.New("x")}
	unmet := fmt.Errorf("profile: %w", &jobs.CallError{Class: jobs.ClassTransient, Reason: "failedPrecondition", Err: errors.New("x")})
	cursor := &jobs.CallError{Class: jobs.ClassCursor, Reason: "invalidPageToken", Err: errors.New("x")}
	for _, tt := range []struct {
		name           string
		err            error
		before, budget int
		want           jobs.State // "": it goes on
	}{
		{"an outage, for ever", network, 1_000_000, 20, ""},
		{"a precondition", unmet, 8, 20, ""},
		{"a precondition, the tenth time", unmet, 9, 20, jobs.Blocked},
		{"a precondition, with less patience", unmet, 3, 3, jobs.Blocked},
		{"a page token", cursor, 19, 20, ""},
		{"a page token, too often", cursor, 20, 20, jobs.Failed},
	} {
		if state, over := jobs.GivesUp(tt.err, tt.before, tt.budget); state != tt.want && over || over != (tt.want != "") {
			t.Errorf("%s: %q, %v, want %q", tt.name, state, over, tt.want)
		}
	}
}

func TestFaultWaitGrowsToMinutes(t *testing.T) {
	var got []time.Duration
	for n := range 9 {
		got = append(got, jobs.FaultWait(n, 1)/time.Second)
	}
	if fmt.Sprint(got[:7]) != "[1ns 2ns 4ns 8ns 16ns 32ns 64ns]" || got[7] != 120 || got[8] != 120 {
		t.Errorf("waits in seconds are %d, want 1, 2, 4 up to 120", got)
	}
	if got := jobs.FaultWait(1_000_000, 30); got != 4*time.Second {
		t.Errorf("the longest wait at scale 30 is %s, want 4s", got)
	}
	if got := jobs.FaultWait(50, 1000); got != time.Second {
		t.Errorf("the longest wait at scale 1000 is %s, want 1s", got)
	}
}

func TestEvidence(t *testing.T) {
	const never = -1
	for _, tt := range []struct {
		name string
		e    jobs.Evidence
		want bool
	}{
		{"a few faults", jobs.Evidence{Streak: 9, Proven: never, Worked: never}, false},
		{"a row of faults", jobs.Evidence{Streak: 10, Proven: never, Worked: time.Second}, true},
		{"a row of faults after a probe", jobs.Evidence{Streak: 10, Proven: time.Second, Worked: time.Second}, false},
		{"a row of faults long after one", jobs.Evidence{Streak: 10, Proven: time.Minute, Worked: time.Minute}, true},
		{"a last attempt among others that work", jobs.Evidence{Streak: 1, Final: true, Proven: never, Worked: time.Second}, false},
		{"a last attempt when nothing works", jobs.Evidence{Streak: 1, Final: true, Proven: never, Worked: time.Minute}, true},
	} {
		if got := tt.e.Doubtful(); got != tt.want {
			t.Errorf("%s: Doubtful = %v, want %v", tt.name, got, tt.want)
		}
	}
	if (jobs.Evidence{Unproven: 8 * time.Hour}).Blamed() || !(jobs.Evidence{Unproven: 25 * time.Hour}).Blamed() {
		t.Error("items are to be blamed after a day without proof, and not before")
	}
}
