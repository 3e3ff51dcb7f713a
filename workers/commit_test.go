package workers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"headroom/jobs"
)

func TestCommitsComeEveryTenResultsOrQuarterSecond(t *testing.T) {
	for _, tt := range []struct {
		name     string
		inFlight int
		latency  time.Duration
		want     []int
	}{
		{"fast messages, by ten", 1, time.Millisecond, []int{10, 10, 10, 5}},
		// The first is committed 250 ms after it came, with those that came in between.
		{"slow messages, by time", 1, 99 * time.Millisecond, slices.Concat(slices.Repeat([]int{3}, 11), []int{2})},
		{"one by one", 1, 300 * time.Millisecond, slices.Repeat([]int{1}, 35)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, &memMailbox{n: 35, slow: tt.latency}, func(o *Options) {
					o.InFlight, o.SliceTime = tt.inFlight, 20*time.Second
				})
				if err := b.slice(b.ref); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(b.store.batches, tt.want) {
					t.Errorf("batches %v, want %v", b.store.batches, tt.want)
				}
			})
		})
	}
}

func TestThePipelineHasNoBubbles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// 343 messages of 7 at a time and 100 ms each: 49 rounds, across many
		// batches of items and commits that take their time.
		b := newRig(t, &memMailbox{n: 343, slow: 100 * time.Millisecond})
		b.store.hook = func(op string) error {
			if op == "next" || op == "commit" {
				<-time.After(20 * time.Millisecond)
			}
			return nil
		}
		started := time.Now()
		if err := b.slice(b.ref); err != nil {
			t.Fatal(err)
		}
		if b.box.most != 7 {
			t.Errorf("most in flight = %d, want 7", b.box.most)
		}
		// The first items, the last commits and the last looks for more take time.
		if took := time.Since(started); took > 4900*time.Millisecond+8*20*time.Millisecond {
			t.Errorf("took %s, want little more than 4.9s", took)
		}
	})
}

func TestACommitThatFailsLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 60, latency: 20 * time.Millisecond})
		commits := 0
		b.store.hook = func(op string) error {
			if op == "commit" {
				if commits++; commits == 2 {
					return errors.New("database is locked")
				}
			}
			return nil
		}
		parked := b.mustPark(b.ref)
		if !strings.Contains(parked.For, "database is locked") {
			t.Errorf("parked for %q, want the store's error", parked.For)
		}
		if row := b.store.job(b.ref.Job); row.Progress.Stored != 10 || commits != 2 {
			t.Errorf("row = %+v after %d commits, want the first commit's 10 and no third", row, commits)
		}
		if row := b.toEnd(); row.State != jobs.Completed || row.Progress.Stored != 60 || len(b.store.messages()) != 60 {
			t.Errorf("row at the end = %+v, want all 60", row)
		}
	})
}

func TestAStoreThatCannotEvenParkIsAFailureToAsynq(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 60})
		b.store.hook = func(op string) error {
			if op != "claim" {
				return fmt.Errorf("%s: database is locked", op)
			}
			return nil
		}
		err := b.slice(b.ref)
		if err == nil || !isFailure(err) || !strings.Contains(err.Error(), "park: database is locked") {
			t.Errorf("slice = %v, want the error of parking", err)
		}
		b.store.hook = nil
		<-time.After(5 * time.Second)
		if row := b.toEnd(); row.State != jobs.Completed || row.Epoch != 2 {
			t.Errorf("row at the end = %+v, want it completed under the next epoch", row)
		}
	})
}

func TestMetricsCountWhatWasCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 12, latency: 10 * time.Millisecond})
		b.box.fault = func(call string, nth int) error {
			switch {
			case call == "get m3":
				return &jobs.CallError{Class: jobs.ClassGone, Reason: "notFound", Err: errors.New("404")}
			case call == "get m4":
				return &jobs.CallError{Class: jobs.ClassItem, Reason: "invalidArgument", Err: errors.New("400")}
			case call == "get m11" && nth == 1:
				return denied(3 * time.Second)
			}
			return nil
		}
		b.toEnd()
		for _, tt := range []struct {
			name string
			got  float64
			want float64
		}{
			{"messages stored", testutil.ToFloat64(b.metrics.messages.WithLabelValues("stored")), 10},
			{"messages gone", testutil.ToFloat64(b.metrics.messages.WithLabelValues("gone")), 1},
			{"messages failed", testutil.ToFloat64(b.metrics.messages.WithLabelValues("failed")), 1},
			{"requeued by user-minute", testutil.ToFloat64(b.metrics.requeued.WithLabelValues("user-minute")), 1},
			{"slices refused", testutil.ToFloat64(b.metrics.slices.WithLabelValues("backfill", "refused")), 1},
			{"slices completed", testutil.ToFloat64(b.metrics.slices.WithLabelValues("backfill", "completed-with-failures")), 1},
			{"fetches in flight", testutil.ToFloat64(b.metrics.inFlight), 0},
			{"stored bytes", testutil.ToFloat64(b.metrics.bytes), 8*27 + 2*28}, // m10 and m11 have a digit more
		} {
			if tt.got != tt.want {
				t.Errorf("%s = %v, want %v", tt.name, tt.got, tt.want)
			}
		}
	})
}
