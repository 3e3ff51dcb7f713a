package e2e_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/meter"
	"headroom/jobs"
	"headroom/quota"
)

const (
	bob = "bob@example.com"
	cid = "cid@example.com"
)

const methodGet = "gmail.users.messages.get"

// TestAUserToldToRetryLaterIsLeftAlone: Google tells one of three users to come
// back in eight seconds, and moves that moment for each call before it.
func TestAUserToldToRetryLaterIsLeftAlone(t *testing.T) {
	t.Parallel()
	const told = 8 * time.Second
	r := newSiteOf(t, fakegoogle.Options{Scale: 20, UserLimit: 1500, PushBack: 200 * time.Millisecond},
		map[string]int{ann: 60, bob: 140, cid: 140})
	if err := r.fake.AddFault(fault.Fault{User: ann, Method: methodGet, Nth: 15, RetryAfterMS: int(told.Milliseconds())}); err != nil {
		t.Fatal(err)
	}
	for _, email := range []string{ann, bob, cid} {
		r.startBackfillOf(email)
	}
	a := r.run(app.RoleScheduler, app.RoleWorker)
	waiting := r.wait(a.Store(), "told to wait", func(j jobs.Job) bool {
		return j.State == jobs.Waiting && strings.Contains(j.WaitingFor, "Google")
	})
	refused := r.refusedAt(ann)
	moment := refused.Add(told) // or some pushes later, for calls that were on their way
	if left := waiting.WaitUntil.Sub(moment); left < -100*time.Millisecond || left > 2*time.Second {
		t.Errorf("the job waits for %q until %s, want %s", waiting.WaitingFor, waiting.WaitUntil, moment)
	}
	person := quota.Caller{Project: "main", User: ann, Lane: quota.Interactive}
	_, err := a.Ledger().Take(t.Context(), person, "gmail", 5)
	if denied, ok := errors.AsType[*quota.DeniedError](err); !ok || denied.Bound != quota.BoundHold || denied.At.Before(moment.Add(-100*time.Millisecond)) {
		t.Errorf("a person's call: %v, want a refusal until %s", err, moment)
	}
	done := r.wait(a.Store(), "ended", terminal)
	for _, email := range []string{bob, cid} {
		if j := r.waitOf(email, a.Store(), "ended", terminal); j.State != jobs.Completed || !j.FinishedAt.Before(done.FinishedAt) {
			t.Errorf("%s: job = %+v, want it completed before the user's that waits", email, j)
		}
	}
	if done.State != jobs.Completed || done.Progress.Stored != 60 || done.Failures != 0 {
		t.Errorf("job = %+v, want all 60 messages", done)
	}

	// What was on its way when Google refused has come in by then.
	var early, after []time.Time
	for call := range r.fake.Select(meter.Filter{User: ann, Since: refused.Add(time.Second)}) {
		if call.At.Before(moment) || call.Refused != "" {
			early = append(early, call.At)
		}
		after = append(after, call.At)
	}
	if len(early) > 0 {
		t.Errorf("%d calls of the user before the moment, the last %s before it", len(early), moment.Sub(early[len(early)-1]))
	}
	probe, second := after[0].Sub(moment), after[1].Sub(after[0])
	if probe > 4*time.Second || second < 60*time.Millisecond {
		t.Errorf("the first call came %s after the moment and the next %s later, want one that goes ahead soon", probe, second)
	}
	pace := func(email string, from, to time.Time) float64 {
		calls := 0
		for call := range r.fake.Select(meter.Filter{User: email, Since: from}) {
			if call.At.Before(to) {
				calls++
			}
		}
		return float64(calls) / to.Sub(from).Seconds()
	}
	others := pace(bob, refused, refused.Add(5*time.Second)) / 20
	ramp := pace(ann, after[1], after[1].Add(1500*time.Millisecond)) / 20
	t.Logf("calls after the refusal: first %s after the moment, then %s; of their pace the others have %.2f, the user has %.2f in the first 1.5 s",
		probe.Round(time.Millisecond), second.Round(time.Millisecond), others, ramp)
	if others < 0.8 {
		t.Errorf("others have %.2f of their pace meanwhile", others)
	}
	if ramp > 0.85 {
		t.Errorf("the user has %.2f of its pace at once, want a ramp", ramp)
	}
	r.nothingSpent()
}

// refusedAt is when Google refused a user's call first.
func (r *site) refusedAt(email string) time.Time {
	r.t.Helper()
	for call := range r.fake.Select(meter.Filter{User: email}) {
		if call.Status == 403 || call.Status == 429 {
			return call.At
		}
	}
	r.t.Fatal("nothing was refused")
	return time.Time{}
}

// nothingSpent checks that Asynq counted no retry as a failure, and archived nothing.
func (r *site) nothingSpent() {
	r.t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: r.redis.Addr})
	defer rdb.Close()
	q, err := asynq.NewInspectorFromRedisClient(rdb).GetQueueInfo(jobs.QueueName("", string(quota.Backfill)))
	if err != nil {
		r.t.Fatal(err)
	}
	if q.Archived != 0 || q.FailedTotal != 0 {
		r.t.Errorf("queue = %+v, want nothing archived and nothing failed", q)
	}
}

// TestTwentyMinutesOfRefusalsEndByThemselves: Google refuses every message for
// twenty minutes of quota time.
func TestTwentyMinutesOfRefusalsEndByThemselves(t *testing.T) {
	t.Parallel()
	const scale, refusing = 60, 20 * time.Second
	r := newSiteOf(t, fakegoogle.Options{Scale: scale, UserLimit: 1200}, map[string]int{ann: 40})
	if err := r.fake.AddFault(fault.Fault{Method: methodGet, Reason: "userRateLimitExceeded", ForMS: int(refusing.Milliseconds())}); err != nil {
		t.Fatal(err)
	}
	ends := time.Now().Add(refusing)
	r.startBackfill()
	a := r.run(app.RoleScheduler, app.RoleWorker)
	rdb := redis.NewClient(&redis.Options{Addr: r.redis.Addr})
	defer rdb.Close()
	inspector := asynq.NewInspectorFromRedisClient(rdb)
	var longest time.Duration
	retries := 0
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for waits := 0; time.Now().Before(ends); <-tick.C {
		j := r.job(a)
		if j.Progress.Failed > 0 || j.Failures > 0 || j.State.Terminal() {
			t.Fatalf("job = %+v, want it to wait", j)
		}
		tasks, err := inspector.ListRetryTasks(string(quota.Backfill))
		if err != nil && !errors.Is(err, asynq.ErrQueueNotFound) {
			t.Fatal(err)
		}
		for _, task := range tasks {
			retries = max(retries, task.Retried)
		}
		if j.State == jobs.Waiting && j.Checkpoint.Listed {
			if waits++; j.WaitUntil.IsZero() || j.WaitingFor == "" {
				t.Errorf("job = %+v, want it to say what it waits for, and until when", j)
			}
			longest = max(longest, time.Until(j.WaitUntil))
		}
	}
	over := time.Now()
	j := r.wait(a.Store(), "ended", terminal)
	if j.State != jobs.Completed || j.Progress.Stored != 40 || j.Failures != 0 {
		t.Errorf("job = %+v, want all 40 messages", j)
	}
	failures, err := a.Store().Failures(t.Context(), j.ID, jobs.FailureFilter{}, "", 10)
	if err != nil || len(failures) > 0 {
		t.Errorf("failures %v, %v, want none", failures, err)
	}
	calls := 0
	for call := range r.fake.Select(meter.Filter{User: ann, Method: methodGet}) {
		if call.Status == 403 {
			calls++
		}
	}
	t.Logf("%d calls refused in %s of quota time; longest wait %s of it; completed %s after the end; %d requeued", calls, refusing*scale,
		(longest * scale).Round(time.Second), time.Since(over).Round(time.Millisecond), j.Requeued)
	if retries != 0 {
		t.Errorf("a task has %d retries, want none spent", retries)
	}
	if calls < 3 || calls > 40 {
		t.Errorf("Google got %d calls in twenty minutes, want one or two a minute at most", calls)
	}
	if longest*scale > 4*time.Minute {
		t.Errorf("a wait of %s of quota time, want no more than some minutes", longest*scale)
	}
	r.nothingSpent()
}

// TestWhatGoogleRefusedIsSaid: Google says to one of two users that the project's
// day is over. Both jobs wait for that, until then, and say so.
func TestWhatGoogleRefusedIsSaid(t *testing.T) {
	t.Parallel()
	r := newSiteOf(t, fakegoogle.Options{Scale: 60, UserLimit: 1200}, map[string]int{ann: 200, bob: 200})
	for _, f := range []fault.Fault{{User: ann, Method: methodGet, Nth: 5, Reason: "dailyLimitExceeded"}} {
		if err := r.fake.AddFault(f); err != nil {
			t.Fatal(err)
		}
	}
	for _, email := range []string{ann, bob} {
		r.startBackfillOf(email)
	}
	a := r.run(app.RoleScheduler, app.RoleWorker)
	for _, email := range []string{ann, bob} {
		j := r.waitOf(email, a.Store(), "waiting for the day's end", func(j jobs.Job) bool {
			return j.State == jobs.Waiting && strings.Contains(j.WaitingFor, "the project's day")
		})
		if !strings.Contains(j.WaitingFor, "dailyLimitExceeded") || j.WaitUntil.Before(quota.DayEnds(time.Now()).Add(-time.Second)) ||
			j.WaitUntil.After(quota.DayEnds(time.Now()).Add(30*time.Second)) {
			t.Errorf("%s waits for %q until %s, want the end of Google's day", email, j.WaitingFor, j.WaitUntil)
		}
	}
}

// TestIsolatedRefusalsCostABackfillSeconds: a tenth of a small mailbox is refused
// once, far below the limit; one refusal names sending mail, and an hour.
func TestIsolatedRefusalsCostABackfillSeconds(t *testing.T) {
	t.Parallel()
	r := newSiteOf(t, fakegoogle.Options{Scale: 20, UserLimit: 60_000}, map[string]int{ann: 60})
	hour := time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")
	faults := []fault.Fault{{Method: methodGet, Nth: 4, Status: 429, Reason: "rateLimitExceeded",
		Message: "User-rate limit exceeded.  Retry after " + hour + " (Mail sending)"}}
	for _, n := range []int{14, 34, 54} {
		faults = append(faults, fault.Fault{Method: methodGet, Nth: n, Status: 429, Reason: "rateLimitExceeded"})
	}
	for _, f := range faults {
		if err := r.fake.AddFault(f); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	r.startBackfill()
	a := r.run(app.RoleScheduler, app.RoleWorker)
	j := r.wait(a.Store(), "ended", terminal)
	if took := time.Since(began); j.State != jobs.Completed || j.Progress.Stored != 60 || j.Failures != 0 || took > 25*time.Second {
		t.Errorf("job = %+v after %s, want all 60 messages within seconds", j, took)
	}
	r.nothingSpent()
	closed, err := a.Ledger().ClosedFeatures(t.Context(), quota.Caller{Project: "main", User: ann, Lane: quota.Interactive}, "gmail")
	if err != nil || len(closed) != 1 || closed[0].Feature != "mail sending" || !strings.Contains(closed[0].Words, "(Mail sending)") {
		t.Errorf("closed: %+v, %v, want mail sending", closed, err)
	}
}
