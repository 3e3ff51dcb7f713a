package e2e_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/control"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/localredis"
	"headroom/internal/lab/rig"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

const ann = "ann@example.com"

// scale makes a minute of quota two seconds.
const scale = 30

// site is a whole installation: a rig with a fake Google and a redis-server of its
// own, and settings that tests change.
type site struct {
	t      *testing.T
	rig    *rig.Rig
	fake   *fakegoogle.Server
	redis  *localredis.Server
	cfg    config.Config
	config string // path of a file with these settings
}

func newSite(t *testing.T, messages int) *site {
	t.Helper()
	return newSiteOf(t, fakegoogle.Options{Scale: scale}, map[string]int{ann: messages})
}

// newSiteOf makes a site of a fake with these options and mailboxes of so many
// messages.
func newSiteOf(t *testing.T, o fakegoogle.Options, mailboxes map[string]int) *site {
	t.Helper()
	fill := func(fake *fakegoogle.Server) error {
		for email, messages := range mailboxes {
			if err := fake.Load(email, fmt.Sprintf("generate:%d", messages)); err != nil {
				return err
			}
		}
		return nil
	}
	lab, err := rig.Start(t.Context(), rig.Options{Fake: o, Fill: fill, Settings: func(cfg *config.Config) {
		cfg.Worker.Slice, cfg.Worker.Lease = 2*time.Second, 2*time.Second
		cfg.Scheduler.Tick = "@every 1s"
		cfg.Sync.Interval = 0
		cfg.Schedules = config.Schedules{"calendar-sync": {Spec: "none"}, "reconciliation": {Spec: "none"}}
		cfg.Log.Level = "info"
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Stop(); err != nil {
			t.Error(err)
		}
	})
	r := &site{t: t, rig: lab, fake: lab.Fake, redis: lab.Redis}
	r.configure(func(*config.Config) {})
	for email := range mailboxes {
		if _, err := r.control().AddAccount(t.Context(), email, rig.Project, control.Assignment{}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// configure changes the settings of processes that start from now on, also in the
// file.
func (r *site) configure(change func(*config.Config)) {
	r.t.Helper()
	err := r.rig.Configure(change)
	if err == nil {
		r.cfg = r.rig.Config
		r.config, err = r.rig.WriteSettings()
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// run runs a process of some roles until the test ends.
func (r *site) run(roles ...app.Role) *app.App {
	r.t.Helper()
	log := zaptest.NewLogger(r.t, zaptest.Level(zap.InfoLevel))
	a, err := app.New(r.t.Context(), r.cfg, app.Options{Roles: roles, Version: "test", Log: log})
	if err != nil {
		r.t.Fatal(err)
	}
	r.runApp(a)
	return a
}

// runApp runs a process until the test ends.
func (r *site) runApp(a *app.App) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				r.t.Errorf("Run = %v, want nil", err)
			}
		case <-time.After(time.Minute):
			r.t.Error("Run did not return within a minute")
		}
	})
}

func (r *site) startBackfill() { r.startBackfillOf(ann) }

func (r *site) startBackfillOf(email string) {
	r.t.Helper()
	started, err := r.control().StartBackfill(r.t.Context(), email, jobs.Filter{})
	if err != nil || !started.Created {
		r.t.Fatalf("StartBackfill = %+v, %v", started, err)
	}
}

// control is what operators can do, from outside of all processes.
func (r *site) control() *control.Control { return r.controlOf(r.cfg) }

// controlOf is the same with other settings.
func (r *site) controlOf(cfg config.Config) *control.Control {
	r.t.Helper()
	c := control.New(control.Options{Config: cfg, Log: zaptest.NewLogger(r.t)})
	r.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			r.t.Errorf("close a Control: %v", err)
		}
	})
	return c
}

func (r *site) open() *sqlite.Store {
	r.t.Helper()
	s, err := sqlite.Open(r.t.Context(), sqlite.Options{Path: r.cfg.Store.Path, Existing: true, Log: zaptest.NewLogger(r.t)})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { s.Close() })
	return s
}

// wait polls the job until it is as wanted, for two minutes at most.
func (r *site) wait(s *sqlite.Store, what string, ok func(jobs.Job) bool) jobs.Job {
	r.t.Helper()
	return r.waitOf(ann, s, what, ok)
}

func (r *site) waitOf(email string, s *sqlite.Store, what string, ok func(jobs.Job) bool) jobs.Job {
	r.t.Helper()
	return r.waitFor(s, jobs.BackfillID(email), what, ok)
}

func (r *site) waitFor(s *sqlite.Store, id, what string, ok func(jobs.Job) bool) jobs.Job {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last jobs.Job
	for {
		j, err := s.Job(ctx, id)
		switch {
		case err == nil && ok(j):
			return j
		case err == nil && j.State.Terminal():
			r.t.Fatalf("the job ended before %s: %+v", what, j)
		case err == nil:
			last = j
		}
		select {
		case <-ctx.Done():
			r.t.Fatalf("not %s in time: %+v", what, last)
		case <-tick.C:
		}
	}
}

func terminal(j jobs.Job) bool { return j.State.Terminal() }

// storedAtLeast reports whether a job has stored so many messages.
func storedAtLeast(n int64) func(jobs.Job) bool {
	return func(j jobs.Job) bool { return j.Progress.Stored >= n }
}

// arrived checks that the store holds what the mailbox does, byte for byte.
func (r *site) arrived(s *sqlite.Store) {
	r.t.Helper()
	want := map[string]string{}
	for _, m := range r.fake.Mailbox(ann).Messages() {
		want[m.ID] = m.SHA256
	}
	got := map[string]string{}
	for after := ""; ; {
		page, err := s.Messages(r.t.Context(), ann, after, 500)
		if err != nil {
			r.t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, m := range page {
			after = m.ID
			got[m.ID] = r.hash(m)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Errorf("stored messages (-mailbox +store):\n%s", diff)
	}
}

// hash reads a message's blob, whose name is the hash of its content.
func (r *site) hash(m jobs.Message) string {
	r.t.Helper()
	blob, err := control.Blobs(r.cfg).Open(r.t.Context(), m.SHA256)
	if err != nil {
		r.t.Fatal(err)
	}
	defer blob.Close()
	raw, err := io.ReadAll(blob)
	if err != nil {
		r.t.Fatal(err)
	}
	return sha(raw)
}
