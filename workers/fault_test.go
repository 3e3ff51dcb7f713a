package workers

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headroom/jobs"
)

// TestAnAnswerAboutOneItemIsNotAboutTheAccount gives calls for messages answers that
// blame the account or the project.
func TestAnAnswerAboutOneItemIsNotAboutTheAccount(t *testing.T) {
	account := &jobs.CallError{Class: jobs.ClassAccount, Reason: "forbidden", Err: errors.New("403 forbidden")}
	project := &jobs.CallError{Class: jobs.ClassProject, Reason: "accessNotConfigured", Err: errors.New("403 accessNotConfigured")}
	outage := transient("backendError")
	for _, tt := range []struct {
		name     string
		messages int
		fault    func(call string, nth int) error
		state    jobs.State
		failed   int64
		profiles int // calls at most
	}{
		{"one message, once", 20, func(call string, nth int) error {
			if call == "get m9" && nth == 1 {
				return account
			}
			return nil
		}, jobs.Completed, 0, 2},
		{"one message, always", 20, func(call string, _ int) error {
			if call == "get m9" {
				return account
			}
			return nil
		}, jobs.CompletedWithFailures, 1, 6},
		{"the project, by one message", 20, func(call string, _ int) error {
			if call == "get m9" {
				return project
			}
			return nil
		}, jobs.CompletedWithFailures, 1, 6},
		{"one message and all calls since", 20, func(call string, nth int) error {
			if call == "get m9" || call == "profile" && nth > 1 {
				return account
			}
			return nil
		}, jobs.Blocked, 0, 2},
		{"all messages", 40, func(call string, _ int) error {
			if strings.HasPrefix(call, "get") {
				return account
			}
			return nil
		}, jobs.Blocked, 0, 2},
		{"the only message", 1, func(call string, _ int) error {
			if call == "get m0" {
				return account
			}
			return nil
		}, jobs.CompletedWithFailures, 1, 7},
		{"all of a handful", 5, func(call string, _ int) error {
			if strings.HasPrefix(call, "get") {
				return account
			}
			return nil
		}, jobs.CompletedWithFailures, 5, 7},
		{"all messages, of which there are few", 12, func(call string, _ int) error {
			if strings.HasPrefix(call, "get") {
				return account
			}
			return nil
		}, jobs.Blocked, 0, 6},
		{"all from some moment on", 40, func(call string, _ int) error {
			if i := strings.TrimPrefix(call, "get m"); i != call && len(i) > 1 {
				return account
			}
			return nil
		}, jobs.CompletedWithFailures, 30, 60},
		{"a bad message in an outage", 20, func(call string, nth int) error {
			switch {
			case call == "get m9":
				return account
			case strings.HasPrefix(call, "get") && nth < 3:
				return outage
			}
			return nil
		}, jobs.CompletedWithFailures, 1, 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, &memMailbox{n: tt.messages, latency: 10 * time.Millisecond, fault: tt.fault})
				row := b.toEnd()
				if row.State != tt.state || row.Progress.Failed != tt.failed {
					t.Errorf("job = %+v, want it %s with %d failed", row, tt.state, tt.failed)
				}
				if row.State == jobs.Blocked && !strings.Contains(row.LastError, "403 forbidden") {
					t.Errorf("last error %q, want Google's words", row.LastError)
				}
				if n := b.box.made("profile"); n > tt.profiles {
					t.Errorf("%d profiles asked for, want %d at most", n, tt.profiles)
				}
			})
		})
	}
}
