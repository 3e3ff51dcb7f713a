package e2e_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/lab/localredis"
	"headroom/jobs"
	"headroom/quota"
)

// outageLength is three windows of the quota's time.
const outageLength = 6 * time.Second

// TestABackfillOutlastsATimeWithoutRedis: while Redis does not answer, people's
// calls go on and the backfill waits; then it goes on by itself, and nothing of it
// counts as a failure of the job's.
func TestABackfillOutlastsATimeWithoutRedis(t *testing.T) {
	for _, tt := range []struct {
		name        string
		stop, start func(*localredis.Server, *localredis.Proxy) error
	}{
		{"killed and restarted",
			func(s *localredis.Server, _ *localredis.Proxy) error { s.Kill(); return nil },
			func(s *localredis.Server, _ *localredis.Proxy) error { return s.Restart(t.Context()) }},
		{"stopped in its tracks",
			func(s *localredis.Server, _ *localredis.Proxy) error { return s.Signal(syscall.SIGSTOP) },
			func(s *localredis.Server, _ *localredis.Proxy) error { return s.Signal(syscall.SIGCONT) }},
		{"slow",
			func(_ *localredis.Server, p *localredis.Proxy) error { p.Delay(2 * time.Second); return nil },
			func(_ *localredis.Server, p *localredis.Proxy) error { p.Delay(0); return nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newSite(t, 400)
			proxy, err := localredis.NewProxy(r.redis.Addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(proxy.Close)
			if tt.name == "slow" {
				r.cfg.Redis.URL = config.URL("redis://" + proxy.Addr + "/0")
			}
			r.startBackfill()
			a := r.run(app.RoleScheduler, app.RoleWorker)
			r.wait(a.Store(), "under way", storedAtLeast(100))

			if err := tt.stop(r.redis, proxy); err != nil {
				t.Fatal(err)
			}
			people, refused := r.peopleGoOn(a.Ledger(), outageLength)
			// What was under way when Redis stopped has long ended, and nothing else began.
			before := r.job(a)
			if err := tt.start(r.redis, proxy); err != nil {
				t.Fatal(err)
			}
			again := time.Now()
			r.wait(a.Store(), "resumed", storedAtLeast(before.Progress.Stored+20))
			resumed := time.Since(again)
			j := r.wait(a.Store(), "ended", terminal)

			meter := r.fake.Meter()
			t.Logf("people: %d calls let in, %d refused; backfill resumed after %s; most in a window %d of %d",
				people, refused, resumed.Round(10*time.Millisecond), meter.User(ann).MostInWindow, meter.User(ann).Limit)
			if people < 100 {
				t.Errorf("%d calls of people were let in without Redis, want at least a tenth of the limit in a window", people)
			}
			if resumed > 10*time.Second {
				t.Errorf("the backfill went on after %s, want seconds", resumed)
			}
			if j.State != jobs.Completed || j.Progress.Stored != 400 || j.Progress.Failed != 0 || before.Failures != 0 || j.Failures != 0 {
				t.Errorf("job = %+v, want all 400 messages and no failure", j)
			}
			if n := meter.OverLimit(); n != 0 || meter.Refused() != 0 {
				t.Errorf("%d limits were passed, and the fake refused %d calls", n, meter.Refused())
			}
			r.arrived(a.Store())
		})
	}
}

// peopleGoOn spends from the ledger as people do, for a while, and counts what was
// let in without Redis and what was refused.
func (r *site) peopleGoOn(ledger *quota.Ledger, d time.Duration) (let, refused int) {
	ctx, cancel := context.WithTimeout(r.t.Context(), d)
	defer cancel()
	person := quota.Caller{Project: "main", User: ann, Lane: quota.Interactive}
	for {
		decision, err := ledger.Take(ctx, person, "gmail", 5)
		switch {
		case ctx.Err() != nil:
			return let, refused
		case err != nil:
			refused++
		case decision.Local:
			let++
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (r *site) job(a *app.App) jobs.Job {
	r.t.Helper()
	j, err := a.Store().Job(r.t.Context(), jobs.BackfillID(ann))
	if err != nil {
		r.t.Fatal(err)
	}
	return j
}
