package workers

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"headroom/jobs"
)

func TestWhatBecomesOfAnItem(t *testing.T) {
	call := func(class jobs.Class, reason string) error {
		return fmt.Errorf("get: %w", &jobs.CallError{Class: class, Reason: reason, Err: errors.New("no")})
	}
	for _, tt := range []struct {
		name    string
		fault   func(nth int) error
		made    int
		want    jobs.State
		failure jobs.Failure
	}{
		{"gone since it was listed", func(int) error { return call(jobs.ClassGone, "notFound") }, 1, jobs.Completed, jobs.Failure{}},
		{"a fault that passes", func(nth int) error {
			if nth <= 4 {
				return call(jobs.ClassTransient, "backendError")
			}
			return nil
		}, 5, jobs.Completed, jobs.Failure{}},
		{"a fault that stays", func(int) error { return call(jobs.ClassTransient, "backendError") }, 5, jobs.CompletedWithFailures,
			jobs.Failure{Class: jobs.ClassTransient, Reason: "backendError", Attempts: 5}},
		{"a fault that nobody classified", func(int) error { return errors.New("unexpected EOF") }, 5, jobs.CompletedWithFailures,
			jobs.Failure{Class: jobs.ClassTransient, Reason: "unexpected EOF", Attempts: 5}},
		{"one that will never work", func(int) error { return call(jobs.ClassItem, "invalidArgument") }, 1, jobs.CompletedWithFailures,
			jobs.Failure{Class: jobs.ClassItem, Reason: "invalidArgument", Attempts: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, &memMailbox{n: 30})
				b.box.fault = func(name string, nth int) error {
					if name == "get m11" {
						return tt.fault(nth)
					}
					return nil
				}
				row := b.toEnd()
				if row.State != tt.want || row.Progress.Done() != 30 || row.Failures != 0 {
					t.Errorf("row = %+v, want %s with all 30 dealt with", row, tt.want)
				}
				if got := b.box.made("get m11"); got != tt.made {
					t.Errorf("fetched %d times, want %d", got, tt.made)
				}
				if tt.failure.Class != "" {
					tt.failure.Job, tt.failure.ID, tt.failure.Phase, tt.failure.GivenUp = b.ref.Job, "m11", "fetch", true
				}
				if diff := cmp.Diff(tt.failure, b.store.failure(b.ref.Job, "m11"), cmpopts.IgnoreTypes(time.Time{})); diff != "" {
					t.Errorf("failure (-want +got):\n%s", diff)
				}
				for i := range 30 {
					if id := fmt.Sprintf("get m%d", i); i != 11 && b.box.made(id) != 1 {
						t.Errorf("%q was made %d times, want once", id, b.box.made(id))
					}
				}
			})
		})
	}
}

// Google's refusals for quota cost no attempt, however many an item has left.
func TestRefusalsAtTheLastAttemptCostNone(t *testing.T) {
	for faults := range 5 {
		t.Run(fmt.Sprintf("after %d faults", faults), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, &memMailbox{n: 10})
				b.box.fault = func(name string, nth int) error {
					switch {
					case name != "get m3" || nth > faults+10:
						return nil
					case nth <= faults:
						return transient("backendError")
					}
					return &jobs.CallError{Class: jobs.ClassQuota, Reason: "rateLimitExceeded", Wait: 20 * time.Second, Err: errors.New("429")}
				}
				row := b.toEnd()
				if row.State != jobs.Completed || row.Progress.Stored != 10 || row.Requeued != 10 || b.box.made("get m3") != faults+11 {
					t.Errorf("row = %+v after %d gets, want all 10 stored after %d faults and 10 refusals", row, b.box.made("get m3"), faults)
				}
			})
		})
	}
}

func TestDeferredItemsWaitEachTimeLonger(t *testing.T) {
	now := time.Now()
	for attempts, most := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second} {
		out := faultOf(jobs.TaskRef{Job: "j"}, jobs.Item{ID: "m", Attempts: attempts}, transient("backendError"), now)
		wait := out.result.RetryAt.Sub(now)
		if out.result.Outcome != jobs.ItemDeferred || wait > most || wait < most*3/4 {
			t.Errorf("after %d attempts: %s in %s, want deferred for %s less a quarter at most", attempts+1, out.result.Outcome, wait, most)
		}
	}
}

func TestOnlyDeferredItemsLeftIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 5})
		b.box.fault = func(call string, nth int) error {
			if call == "get m2" && nth <= 2 {
				return transient("backendError")
			}
			return nil
		}
		// The first retry, due within a second, is waited for in place; the
		// second is not.
		parked := b.mustPark(b.ref)
		if parked.For != "the retry of 1 items" {
			t.Errorf("parked for %q, want the retry of 1 items", parked.For)
		}
		if row := b.store.job(b.ref.Job); row.Failures != 0 || row.Refusals != 0 || row.Requeued != 0 || row.Progress.Stored != 4 {
			t.Errorf("row = %+v, want 4 stored and nothing counted", row)
		}
		if b.box.made("get m2") != 2 {
			t.Errorf("m2 fetched %d times, want 2", b.box.made("get m2"))
		}
	})
}

func TestAParserCanDoNoHarm(t *testing.T) {
	for _, tt := range []struct {
		name   string
		parser func(release chan struct{}) Parser
		status jobs.ParseStatus
		says   string
	}{
		{"fails", func(chan struct{}) Parser {
			return func([]byte) (string, error) { return "", errors.New("no header in sight") }
		}, jobs.ParseFailed, "no header in sight"},
		{"panics", func(chan struct{}) Parser {
			return func([]byte) (string, error) { panic("index out of range") }
		}, jobs.ParseFailed, "index out of range"},
		{"hangs", func(release chan struct{}) Parser {
			return func([]byte) (string, error) { <-release; return "", nil }
		}, jobs.ParseFailed, "longer than 5s"},
		{"scribbles", func(chan struct{}) Parser {
			return func(raw []byte) (string, error) { clear(raw); return "caf\xe9", nil }
		}, jobs.Parsed, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				b := newRig(t, &memMailbox{n: 3}, func(o *Options) { o.Parser = tt.parser(release) })
				if row := b.toEnd(); row.State != jobs.Completed || row.Progress.Stored != 3 {
					t.Errorf("row = %+v, want all 3 stored", row)
				}
				m := b.store.messages()["m1"]
				if m.ParseStatus != tt.status || !strings.Contains(m.ParseError, tt.says) {
					t.Errorf("parse status %s (%q), want %s (%q)", m.ParseStatus, m.ParseError, tt.status, tt.says)
				}
				if got := b.blobs.body(m.SHA256); !strings.HasPrefix(got, "Subject: about m1") {
					t.Errorf("blob = %q, want the message as it came", got)
				}
				if tt.name == "hangs" && testutil.ToFloat64(b.metrics.parseTimeouts) != 3 {
					t.Errorf("parse timeouts = %v, want 3", testutil.ToFloat64(b.metrics.parseTimeouts))
				}
				if tt.name == "scribbles" && m.Subject != "caf\uFFFD" {
					t.Errorf("subject = %q, want it made valid", m.Subject)
				}
			})
		})
	}
}

func TestABodyThatCannotBeStoredIsNotTheItemsFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 10})
		b.blobs.hook = func() error { return errors.New("no space left on device") }
		parked := b.mustPark(b.ref)
		if !strings.Contains(parked.For, "no space left on device") {
			t.Errorf("parked for %q, want the store's error", parked.For)
		}
		row := b.store.job(b.ref.Job)
		if row.Failures != 1 || row.Progress.Done() != 0 || b.store.failedAttempts() != 0 {
			t.Errorf("row = %+v, want one failure of the job and no attempt of an item", row)
		}
		b.blobs.hook = nil
		if row := b.toEnd(); row.State != jobs.Completed || row.Progress.Stored != 10 {
			t.Errorf("row at the end = %+v, want all 10", row)
		}
	})
}

func TestClipBoundsForeignText(t *testing.T) {
	if got := clip(string(bytes.Repeat([]byte("é"), 400))); len(got) > 510 || !strings.HasSuffix(got, "…") {
		t.Errorf("clip = %d bytes, want some 500 and an ellipsis", len(got))
	}
}
