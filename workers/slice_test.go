package workers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hibiken/asynq"

	"headroom/jobs"
	"headroom/quota"
)

func TestASliceBringsASmallMailbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 25, perPage: 10})
		if err := b.slice(b.ref); err != nil {
			t.Fatalf("slice = %v, want nil", err)
		}
		row := b.store.job(b.ref.Job)
		if row.State != jobs.Completed || row.Progress.Stored != 25 || row.Progress.Expected != 25 || row.Checkpoint.HistoryID != 77 {
			t.Errorf("row = %+v, want 25 stored, completed, history id 77", row)
		}
		got := b.store.messages()["m7"]
		got.SHA256 = ""
		want := jobs.Message{Account: ann, ID: "m7", HistoryID: 5, InternalDate: b.box.date(7), Labels: []string{"INBOX"}, Size: 27,
			Subject: "about m7", ParseStatus: jobs.Parsed}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("message m7 (-want +got):\n%s", diff)
		}
		if len(b.queue.refs) != 0 {
			t.Errorf("enqueued %v, want no successor of a completed job", b.queue.refs)
		}
		if first := b.box.calls[:2]; first[0] != "profile" || first[1] != "list " {
			t.Errorf("first calls %q, want the profile before the listing", first)
		}
	})
}

func TestASliceWhoseTimeIsOverHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 100, latency: 700 * time.Millisecond})
		started := time.Now()
		if err := b.slice(b.ref); err != nil {
			t.Fatalf("slice = %v, want nil", err)
		}
		// Two calls of 0.7 s to list, then rounds of 7 from 1.4 s on: the fifth
		// ends at 4.9 s, and the sixth is the last to begin within 5 s.
		if took := time.Since(started); took != 5600*time.Millisecond {
			t.Errorf("slice took %s, want 5.6s", took)
		}
		row := b.store.job(b.ref.Job)
		if row.Progress.Stored != 42 || row.Slice != 1 || !row.LeaseUntil.IsZero() || row.State != jobs.Running {
			t.Errorf("row = %+v, want 42 stored, at slice 1, nobody's", row)
		}
		if diff := cmp.Diff([]jobs.TaskRef{b.ref.Next()}, b.queue.refs); diff != "" {
			t.Errorf("enqueued (-want +got):\n%s", diff)
		}
		for i := range 42 {
			if id := fmt.Sprintf("get m%d", i); b.box.made(id) != 1 {
				t.Errorf("%q was made %d times, want once", id, b.box.made(id))
			}
		}
		if row := b.toEnd(); row.Progress.Stored != 100 || row.State != jobs.Completed {
			t.Errorf("row at the end = %+v, want all 100", row)
		}
		if b.box.most != 7 {
			t.Errorf("most in flight = %d, want 7", b.box.most)
		}
	})
}

func TestATaskThatIsNotTheJobsSliceDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 5})
		b.store.Edit(b.ref.Job, func(j *jobs.Job) { j.Epoch, j.Slice = 3, 4 })
		at := b.store.job(b.ref.Job).Ref()
		for _, tt := range []struct {
			name string
			ref  jobs.TaskRef
			puts []jobs.TaskRef
		}{
			{"an older epoch", jobs.TaskRef{Job: at.Job, Epoch: 2, Slice: 4}, nil},
			{"a slice not reached", jobs.TaskRef{Job: at.Job, Epoch: 3, Slice: 5}, nil},
			{"a job that is unknown", jobs.TaskRef{Job: "backfill:nobody@example.com", Epoch: 1}, nil},
			{"a slice done before", jobs.TaskRef{Job: at.Job, Epoch: 3, Slice: 2}, []jobs.TaskRef{at}},
		} {
			b.queue.refs = nil
			if err := b.slice(tt.ref); err != nil {
				t.Errorf("%s: slice = %v, want nil", tt.name, err)
			}
			if diff := cmp.Diff(tt.puts, b.queue.refs); diff != "" {
				t.Errorf("%s: enqueued (-want +got):\n%s", tt.name, diff)
			}
		}
		if len(b.box.calls) != 0 || len(b.store.done()) != 0 {
			t.Errorf("calls %q, writes %q, want none", b.box.calls, b.store.done())
		}
		if err := b.ProcessTask(t.Context(), asynq.NewTask(jobs.TaskType, []byte("no json"))); err != nil {
			t.Errorf("a task that means nothing = %v, want it dropped", err)
		}
	})
}

// A queue may deliver a task again, at once or after its slice has ended. And the
// profile counts spam and trash, which the listing does not.
func TestEveryTaskDeliveredTwiceCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const promised, listed = 1000, 950
		b := newRig(t, &memMailbox{n: listed, promised: promised, latency: 100 * time.Millisecond})
		most := jobs.Progress{}
		for range 100 {
			row := b.store.job(b.ref.Job)
			if row.State.Terminal() {
				break
			}
			var twice sync.WaitGroup
			for range 2 {
				twice.Go(func() {
					if _, parked := errors.AsType[*RequeueError](b.slice(row.Ref())); parked {
						<-time.After(2 * time.Second)
					}
				})
			}
			twice.Wait()
			if err := b.slice(row.Ref()); err != nil {
				t.Errorf("a third time, after its slice = %v, want nil", err)
			}
			p := b.store.job(b.ref.Job).Progress
			if p.Done() > p.Listed || p.Done() < most.Done() {
				t.Errorf("progress = %+v after %+v", p, most)
			}
			most = p
		}
		row := b.store.job(b.ref.Job)
		if row.State != jobs.Completed || row.Progress.Stored != listed || row.Progress.Listed != listed || row.Progress.Done() != listed {
			t.Errorf("row = %+v, want %d of %d", row, listed, listed)
		}
		finished := 0
		for _, write := range b.store.done() {
			if write == "finish" {
				finished++
			}
		}
		if finished != 1 {
			t.Errorf("the job was finished %d times, want once", finished)
		}
		for i := range listed {
			if id := fmt.Sprintf("get m%d", i); b.box.made(id) != 1 {
				t.Errorf("%q was made %d times, want once", id, b.box.made(id))
			}
		}
	})
}

func TestASuccessorThatCouldNotBeEnqueuedIsMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 100, latency: time.Second})
		b.queue.err = errors.New("redis: connection refused")
		if err := b.slice(b.ref); !errors.Is(err, b.queue.err) || !isFailure(err) {
			t.Fatalf("slice = %v, want the queue's error, for Asynq to retry", err)
		}
		b.queue.err = nil
		if err := b.slice(b.ref); err != nil {
			t.Fatalf("rerun = %v, want nil", err)
		}
		if diff := cmp.Diff([]jobs.TaskRef{b.ref.Next()}, b.queue.refs); diff != "" {
			t.Errorf("enqueued (-want +got):\n%s", diff)
		}
	})
}

func TestAHeldJobIsTriedWhenItsLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 5})
		until := time.Now().Add(3 * time.Second)
		b.store.Edit(b.ref.Job, func(j *jobs.Job) { j.LeaseUntil = until })
		parked := b.mustPark(b.ref)
		if !parked.Until.Equal(until) || parked.For != "the lease of another run" {
			t.Errorf("parked %v, want until the lease ends at %s", parked, until)
		}
		if row := b.store.job(b.ref.Job); row.Failures != 0 || row.Refusals != 0 {
			t.Errorf("row = %+v, want nothing counted", row)
		}

		<-time.After(3 * time.Second)
		if err := b.slice(b.ref); err != nil {
			t.Fatalf("slice after the lease = %v, want nil", err)
		}
		// The epoch is part of the task's id: the work goes on under a new one.
		next := b.ref
		next.Epoch, next.Slice = 2, 1
		if diff := cmp.Diff([]jobs.TaskRef{next}, b.queue.refs); diff != "" {
			t.Errorf("enqueued (-want +got):\n%s", diff)
		}
		if err := b.slice(next); err != nil || b.store.job(b.ref.Job).State != jobs.Completed {
			t.Errorf("slice of the new epoch = %v, row %+v, want it completed", err, b.store.job(b.ref.Job))
		}
		if err := b.slice(b.ref); err != nil {
			t.Errorf("the old epoch's task = %v, want it dropped", err)
		}
	})
}

func TestALostLeaseStopsTheSliceWithoutAnotherWrite(t *testing.T) {
	for _, tt := range []struct {
		name string
		lose func(b *rig)
		at   time.Duration // when the slice must be over
	}{
		{"another owner", func(b *rig) {
			time.AfterFunc(time.Second, func() { b.store.Edit(b.ref.Job, func(j *jobs.Job) { j.Epoch++ }) })
		}, 5 * time.Second / 3}, // with the next renewal
		{"a store that does not answer renewals", func(b *rig) {
			b.store.hook = func(op string) error {
				if op == "renew" {
					return errors.New("database is locked")
				}
				return nil
			}
		}, 5 * time.Second}, // when the lease may be another's
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, &memMailbox{n: 50, slow: 20 * time.Second})
				tt.lose(b)
				started := time.Now()
				if err := b.slice(b.ref); err != nil {
					t.Fatalf("slice = %v, want nil", err)
				}
				if took := time.Since(started).Round(time.Millisecond); took != tt.at.Round(time.Millisecond) {
					t.Errorf("slice ended after %s, want %s", took, tt.at)
				}
				for _, write := range []string{"end", "park", "finish"} {
					if slices.Contains(b.store.done(), write) {
						t.Errorf("writes %q, want no %s after the lease was lost", b.store.done(), write)
					}
				}
				if len(b.queue.refs) != 0 {
					t.Errorf("enqueued %v, want nothing", b.queue.refs)
				}
			})
		})
	}
}

func TestTheLeaseOfALongSliceIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 1, latency: 12 * time.Second})
		go func() { // a second run of the same task comes in between
			<-time.After(9 * time.Second)
			if parked := b.mustPark(b.ref); parked.For != "the lease of another run" {
				t.Errorf("second run: %v, want it to wait for the lease", parked)
			}
		}()
		b.toEnd()
		if row := b.store.job(b.ref.Job); row.Epoch != 1 || row.Progress.Stored != 1 {
			t.Errorf("row = %+v, want epoch 1 still", row)
		}
	})
}

// A busy store answers a claim late; the lease begins when it is granted.
func TestAClaimThatWaitedLeavesTheWholeLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 20, latency: 100 * time.Millisecond})
		b.store.hook = func(op string) error {
			if op == "claim" {
				<-time.After(8 * time.Second) // longer than the lease
			}
			return nil
		}
		if err := b.slice(b.ref); err != nil {
			t.Fatalf("slice = %v, want nil", err)
		}
		if row := b.store.job(b.ref.Job); row.State != jobs.Completed || row.Progress.Stored != 20 || row.Epoch != 1 {
			t.Errorf("row = %+v, want all 20 stored by the slice that waited", row)
		}
	})
}

func TestWhenALeaseBegan(t *testing.T) {
	asked := time.Now()
	answered := asked.Add(3 * time.Second)
	for _, tt := range []struct {
		name  string
		until time.Duration // of a lease of 5s, on the store's clock, since asked
		want  time.Duration // since asked
	}{
		{"in between", 7 * time.Second, 2 * time.Second},
		{"a store whose clock is behind", -20 * time.Second, 0},
		{"a store whose clock is ahead", time.Hour, 3 * time.Second},
	} {
		job := jobs.Job{LeaseUntil: asked.Add(tt.until)}
		if got := granted(job, 5*time.Second, asked, answered).Sub(asked); got != tt.want {
			t.Errorf("%s: granted %s after it was asked for, want %s", tt.name, got, tt.want)
		}
	}
}

func TestShutdownLetsASliceEndWithinASecond(t *testing.T) {
	for _, tt := range []struct {
		name    string
		latency time.Duration
		stored  int64
	}{
		{"what is nearly done is waited for", 600 * time.Millisecond, 14},
		{"what drags on is cut off, and stays pending", 40 * time.Second, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, &memMailbox{n: 40, slow: tt.latency})
				time.AfterFunc(time.Second, func() { b.drain() })
				started := time.Now()
				if err := b.slice(b.ref); err != nil {
					t.Fatalf("slice = %v, want nil", err)
				}
				if took := time.Since(started); took > 2*time.Second {
					t.Errorf("slice ended %s after the stop, want a second at most", took-time.Second)
				}
				row := b.store.job(b.ref.Job)
				if row.Progress.Stored != tt.stored || row.Slice != 1 || row.Failures != 0 || len(b.queue.refs) != 1 {
					t.Errorf("row %+v, enqueued %v, want %d stored and a successor", row, b.queue.refs, tt.stored)
				}
				if n := b.store.failedAttempts(); n > 0 {
					t.Errorf("%d attempts of items failed, want none", n)
				}
			})
		})
	}
}

func TestAPanicIsAFailureAndHarmsNobody(t *testing.T) {
	for _, where := range []string{"get m3", "list ", "commit", "next", "blob", "renew", "claim", "park", "end"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, &memMailbox{n: 100, latency: 500 * time.Millisecond})
				var once atomic.Bool
				boom := func(op string) error {
					if op == where && once.CompareAndSwap(false, true) {
						panic("boom at " + op)
					}
					if where == "park" && op == "get m3" && !once.Load() { // so that there is a reason to
						return denied(2 * time.Second)
					}
					return nil
				}
				b.store.hook = boom
				b.blobs.hook = func() error { return boom("blob") }
				b.box.fault = func(call string, _ int) error { return boom(call) }
				err := b.slice(b.ref)
				switch where {
				case "claim", "park", "end": // the row could not say so
					if err == nil || !isFailure(err) {
						t.Fatalf("slice = %v, want an error that Asynq retries", err)
					}
				case "renew":
					if err != nil {
						t.Fatalf("slice = %v, want it lost", err)
					}
				default:
					parked, ok := errors.AsType[*RequeueError](err)
					if !ok || !strings.Contains(parked.For, "boom at "+where) {
						t.Fatalf("slice = %v, want it parked for the panic", err)
					}
					if row := b.store.job(b.ref.Job); row.Failures == 0 && row.Progress.Stored == 0 {
						t.Errorf("row = %+v, want a failure counted", row)
					}
				}
				<-time.After(6 * time.Second) // any lease is over
				if row := b.toEnd(); row.State != jobs.Completed || row.Progress.Stored != 100 {
					t.Errorf("row at the end = %+v, want all 100", row)
				}
			})
		})
	}
}

func TestWhatBlocksAJob(t *testing.T) {
	call := func(class jobs.Class, reason string) error {
		return &jobs.CallError{Class: class, Reason: reason, Err: errors.New("Google says no")}
	}
	for _, tt := range []struct {
		name string
		at   string
		err  error
		want jobs.State
		says string
	}{
		{"a revoked grant, found by the profile", "profile", call(jobs.ClassAccount, "invalid_grant"), jobs.Blocked, "invalid_grant"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, &memMailbox{n: 20, latency: 10 * time.Millisecond})
				b.box.fault = func(name string, _ int) error {
					if name == tt.at {
						return tt.err
					}
					return nil
				}
				if err := b.slice(b.ref); err != nil {
					t.Fatalf("slice = %v, want nil", err)
				}
				row := b.store.job(b.ref.Job)
				if row.State != tt.want || !strings.Contains(row.LastError, tt.says) || !row.LeaseUntil.IsZero() {
					t.Errorf("row = %+v, want it %s, saying %q", row, tt.want, tt.says)
				}
				if stored := int64(len(b.store.messages())); stored != row.Progress.Stored {
					t.Errorf("%d messages stored, counted %d", stored, row.Progress.Stored)
				}
			})
		})
	}
}

// TestAFailedPreconditionIsTriedAFewTimes: Gmail answers so in passing, and to who has
// no mailbox or no right to it. The account has to act if it goes on.
func TestAFailedPreconditionIsTriedAFewTimes(t *testing.T) {
	for _, tt := range []struct {
		name  string
		at    string // the calls that fail, by their beginning
		times int
		want  jobs.State
		calls int // that failed, at most
	}{
		{"for a while", "profile", 5, jobs.Completed, 5},
		{"on and on", "profile", 1000, jobs.Blocked, 10},
		{"of lists", "list ", 1000, jobs.Blocked, 10},
		{"of fetches", "get", 1000, jobs.Blocked, 140}, // of some each time
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, &memMailbox{n: 20, latency: 10 * time.Millisecond})
				failed := 0
				var mu sync.Mutex
				b.box.fault = func(name string, _ int) error {
					mu.Lock()
					defer mu.Unlock()
					if !strings.HasPrefix(name, tt.at) || failed >= tt.times {
						return nil
					}
					failed++
					return transient("failedPrecondition")
				}
				began := time.Now()
				row := b.toEnd()
				if row.State != tt.want || row.Progress.Failed != 0 || failed > tt.calls {
					t.Errorf("row = %+v after %d calls that failed, want it %s after %d at most", row, failed, tt.want, tt.calls)
				}
				if took := time.Since(began); took > 10*time.Minute {
					t.Errorf("it took %s, want minutes", took)
				}
				if row.State == jobs.Blocked && (!strings.Contains(row.LastError, "failedPrecondition") || !strings.Contains(row.LastError, "then start the backfill again")) {
					t.Errorf("last error %q, want it to say why, and what to do", row.LastError)
				}
			})
		})
	}
}

// What somebody can put right for a project or in the settings ends no job: it
// waits, says since when and why, and goes on by itself.
func TestWhatAJobWaitsOut(t *testing.T) {
	for _, tt := range []struct {
		name string
		at   string // the call that fails; "": all
		err  error
		says string
	}{
		{"an API that is switched off", "list ", &jobs.CallError{Class: jobs.ClassProject, Reason: "accessNotConfigured", Err: errors.New("enable it at")}, "enable it at"},
		{"a project that the ledger does not know", "profile", fmt.Errorf("project p: %w", quota.ErrUnknownProject), "google.projects"},
		{"a cost beyond the ceiling", "get m9", fmt.Errorf("20 units over the ceiling of 12: %w", quota.ErrNeverFits), "raise the lane's ceiling"},
		{"a network that is away", "", &jobs.CallError{Class: jobs.ClassTransient, Reason: "network", Err: errors.New("connection refused")}, "connection refused"},
		{"a store whose disk is full", "list ", errors.New("no space left on device"), "no space left on device"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, &memMailbox{n: 20, latency: 10 * time.Millisecond}, func(o *Options) { o.FailureBudget = 1 })
				began := time.Now()
				b.box.fault = func(name string, _ int) error {
					if (tt.at == "" || name == tt.at) && time.Since(began) < 3*time.Hour {
						return tt.err
					}
					return nil
				}
				b.mustPark(b.ref)
				for time.Since(began) < 2*time.Hour {
					ref := b.store.job(b.ref.Job).Ref()
					if parked, ok := errors.AsType[*RequeueError](b.slice(ref)); ok {
						<-time.After(requeueDelay(time.Until(parked.Until)))
					}
				}
				row := b.store.job(b.ref.Job)
				wait := time.Until(row.WaitUntil)
				if row.State != jobs.Waiting || !strings.Contains(row.WaitingFor, tt.says) || wait > 2*time.Minute || row.Failures < 20 {
					t.Errorf("row after two hours = %+v, want it waiting for minutes, saying %q", row, tt.says)
				}
				if since := ", since " + began.UTC().Format("2006-01-02T15:04"); !strings.Contains(row.WaitingFor, since) {
					t.Errorf("the job waits for %q, want it to end with %q", row.WaitingFor, since)
				}
				if row := b.toEnd(); row.State != jobs.Completed || row.Progress.Stored != 20 {
					t.Errorf("row at the end = %+v, want all 20 messages", row)
				}
			})
		})
	}
}

// What a job says is to be done fits its kind.
func TestHintsNameHowTheJobIsStartedAgain(t *testing.T) {
	broken := persistentError{errors.New("broken")}
	for _, tt := range []struct {
		name  string
		email string
		kind  jobs.Kind
		open  error // at Google
		fails int   // before, in a row
		want  string
	}{
		{"a backfill of a strange account", "stranger@example.com", jobs.MailBackfill, nil, 0, "; add it, then start the backfill again"},
		{"a sync of a strange account", "stranger@example.com", jobs.MailSync, nil, 0, "; add it, then ask for the sync again with: headroom sync stranger@example.com"},
		{"a backfill that gives up", ann, jobs.MailBackfill, broken, 20, ": broken; fix the cause, then start the backfill again"},
		{"a sync that gives up", ann, jobs.MailSync, broken, 20, ": broken; fix the cause, then ask for the sync again with: headroom sync ann@example.com"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newRig(t, &memMailbox{n: 5}, func(o *Options) { o.Google = shut{tt.open} })
			ref := b.store.start(tt.email)
			b.store.Edit(ref.Job, func(j *jobs.Job) { j.Kind, j.Failures = tt.kind, tt.fails })
			if err := b.slice(ref); err != nil {
				t.Fatalf("slice = %v, want nil", err)
			}
			if row := b.store.job(ref.Job); !row.State.Terminal() || !strings.HasSuffix(row.LastError, tt.want) {
				t.Errorf("row is %s, saying %q; want it ended, saying %q at the end", row.State, row.LastError, tt.want)
			}
		})
	}
}

// shut is a Google at which no mailbox opens.
type shut struct{ err error }

func (s shut) Mailbox(context.Context, jobs.Account, quota.Lane, time.Duration) (Mailbox, error) {
	return nil, s.err
}

func TestAnAccountThatIsGoneBlocksItsJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 5})
		ref := b.store.start("stranger@example.com")
		if err := b.slice(ref); err != nil {
			t.Fatalf("slice = %v, want nil", err)
		}
		if row := b.store.job(ref.Job); row.State != jobs.Blocked || !strings.Contains(row.LastError, "stranger@example.com") {
			t.Errorf("row = %+v, want it blocked, naming the account", row)
		}
	})
}
