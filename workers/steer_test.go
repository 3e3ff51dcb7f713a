package workers

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"headroom/jobs"
)

// want asks the job's owner to bring it to a state.
func (b *rig) want(state jobs.State) {
	b.store.Edit(b.ref.Job, func(j *jobs.Job) { j.Wanted = state })
}

// rested checks that a slice has left the job in a state, with nothing of what was
// fetched lost, and without a task.
func (b *rig) rested(err error, state jobs.State) {
	b.t.Helper()
	row := b.store.job(b.ref.Job)
	if err != nil || row.State != state || row.Wanted != "" || !row.LeaseUntil.IsZero() {
		b.t.Errorf("slice = %v, row = %+v; want nil and %s", err, row, state)
	}
	if len(b.queue.refs) != 0 {
		b.t.Errorf("tasks were put: %v", b.queue.refs)
	}
	if got := testutil.ToFloat64(b.metrics.slices.WithLabelValues("backfill", string(state))); got != 1 {
		b.t.Errorf("slices that ended %s = %v, want 1", state, got)
	}
}

func TestASliceStopsWhenItsJobIsWantedElsewhere(t *testing.T) {
	for _, state := range []jobs.State{jobs.Paused, jobs.Cancelled} {
		for _, tt := range []struct {
			name  string
			box   *memMailbox
			lease time.Duration
			most  time.Duration // until the slice has ended
		}{
			{"fetching", &memMailbox{n: 10_000, latency: 10 * time.Millisecond}, 0, 1700 * time.Millisecond},
			{"listing", &memMailbox{n: 10_000, perPage: 5, latency: 10 * time.Millisecond}, 0, 1700 * time.Millisecond},
			{"in calls that drag on", &memMailbox{n: 100, slow: time.Minute}, 0, 2500 * time.Millisecond},
			{"with a long lease", &memMailbox{n: 100, slow: time.Minute}, time.Minute, 2800 * time.Millisecond},
		} {
			t.Run(string(state)+" "+tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newRig(t, tt.box, func(o *Options) {
						o.SliceTime, o.Lease = 30*time.Second, tt.lease
					})
					var asked time.Time
					go func() {
						<-time.After(100 * time.Millisecond)
						asked = time.Now()
						b.want(state)
					}()
					err := b.slice(b.ref)
					if took := time.Since(asked); took > tt.most {
						t.Errorf("the slice went on for %s, want at most %s", took, tt.most)
					}
					b.rested(err, state)
					got := 0
					for _, call := range b.box.calls {
						if strings.HasPrefix(call, "get") && b.box.slow == 0 {
							got++
						}
					}
					if row := b.store.job(b.ref.Job); int(row.Progress.Stored) != got {
						t.Errorf("%d stored of %d that were fetched", row.Progress.Stored, got)
					}
				})
			})
		}
	}
}

// A process that stops brings the jobs that are wanted elsewhere there, too.
func TestDrainingBringsAJobWhereItIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 10_000, latency: 10 * time.Millisecond})
		go func() {
			<-time.After(100 * time.Millisecond)
			b.want(jobs.Paused)
			b.drain()
		}()
		started := time.Now()
		b.rested(b.slice(b.ref), jobs.Paused)
		if took := time.Since(started); took > time.Second {
			t.Errorf("draining took %s", took)
		}
	})
}

// Whatever else ends a slice, its job comes to rest.
func TestAJobThatIsWantedElsewhereDoesNotWait(t *testing.T) {
	for name, fault := range map[string]error{
		"refused for quota": denied(time.Hour), "a fault": errors.New("the network is down"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, &memMailbox{n: 10})
				b.box.fault = func(call string, _ int) error {
					b.want(jobs.Paused)
					return fault
				}
				b.rested(b.slice(b.ref), jobs.Paused)
			})
		})
	}
}

func TestATaskOfAJobThatRestsDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 10})
		b.store.Edit(b.ref.Job, func(j *jobs.Job) { j.State = jobs.Paused })
		if err := b.slice(b.ref); err != nil || len(b.box.calls) != 0 || len(b.queue.refs) != 0 {
			t.Errorf("slice = %v, calls %v, tasks %v; want nothing", err, b.box.calls, b.queue.refs)
		}
	})
}

// Somebody wants items retried at the very end of a job: it goes on.
func TestAJobWhoseItemsArePendingAgainGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 3, fault: func(call string, nth int) error {
			if call == "get m1" && nth == 1 {
				return &jobs.CallError{Class: jobs.ClassItem, Err: errors.New("400")}
			}
			return nil
		}})
		b.store.hook = func(op string) error {
			if op == "finish" {
				b.store.hook = nil
				_, _, err := b.store.RetryFailed(t.Context(), b.ref.Job, jobs.FailureFilter{})
				return err
			}
			return nil
		}
		if err := b.slice(b.ref); err != nil || len(b.queue.refs) != 1 || b.queue.refs[0] != b.ref.Next() {
			t.Errorf("slice = %v, tasks %v; want the next slice's", err, b.queue.refs)
		}
		if row := b.toEnd(); row.State != jobs.Completed || row.Progress.Stored != 3 || b.box.made("get m1") != 2 {
			t.Errorf("row at the end = %+v, m1 fetched %d times", row, b.box.made("get m1"))
		}
	})
}
