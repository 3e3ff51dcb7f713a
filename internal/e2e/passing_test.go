package e2e_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
	"headroom/quota"
)

// front is a way to the fake that can be taken away.
type front struct {
	t      *testing.T
	addr   string
	target *url.URL
	server *http.Server
}

func newFront(r *site) *front {
	r.t.Helper()
	target, err := url.Parse(string(r.cfg.Google.Endpoint))
	if err != nil {
		r.t.Fatal(err)
	}
	f := &front{t: r.t, addr: "127.0.0.1:0", target: target}
	f.up()
	r.t.Cleanup(f.down)
	r.cfg.Google.Endpoint = config.URL("http://" + f.addr)
	return f
}

func (f *front) up() {
	f.t.Helper()
	listener, err := net.Listen("tcp", f.addr)
	if err != nil {
		f.t.Fatal(err)
	}
	f.addr = listener.Addr().String()
	f.server = &http.Server{Handler: httputil.NewSingleHostReverseProxy(f.target)}
	go func(s *http.Server) { _ = s.Serve(listener) }(f.server)
}

func (f *front) down() { _ = f.server.Close() }

// TestABackfillOutlastsATimeWithoutGoogle: nothing listens where Google is, for as
// many faults as once ended jobs. Jobs say so, and since when; then they go on.
func TestABackfillOutlastsATimeWithoutGoogle(t *testing.T) {
	t.Parallel()
	mailboxes := map[string]int{ann: 120, "bob@example.com": 3}
	r := newSiteOf(t, fakegoogle.Options{Scale: scale}, mailboxes)
	way := newFront(r)
	way.down()
	a := r.run(app.RoleScheduler, app.RoleWorker)
	for email := range mailboxes {
		r.startBackfillOf(email)
	}
	for email := range mailboxes {
		r.waitOf(email, a.Store(), "waiting for Google", func(j jobs.Job) bool {
			return j.State == jobs.Waiting && j.Failures >= 3 && strings.Contains(j.WaitingFor, "connection refused") &&
				strings.Contains(j.WaitingFor, ", since 20") && !j.FailingSince.IsZero()
		})
	}
	way.up()
	for email, n := range mailboxes {
		j := r.waitOf(email, a.Store(), "ended", terminal)
		if j.State != jobs.Completed || j.Progress.Stored != int64(n) || j.Progress.Failed != 0 || !j.FailingSince.IsZero() {
			t.Errorf("job = %+v, want all %d messages", j, n)
		}
	}
}

// TestAProjectsCauseClearsByItself: Google calls the host's clock wrong. One job asks
// now and then whether it still does, and all go on when it does not, without a command.
func TestAProjectsCauseClearsByItself(t *testing.T) {
	t.Parallel()
	mailboxes := map[string]int{}
	for i := range 8 {
		mailboxes[fmt.Sprintf("u%d@example.com", i)] = 5
	}
	r := newSiteOf(t, fakegoogle.Options{Scale: scale}, mailboxes)
	r.withKey()
	if err := r.fake.AddFault(fault.Fault{Method: methodToken, Reason: "invalid_grant",
		Message: "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe."}); err != nil {
		t.Fatal(err)
	}
	a := r.run(app.RoleScheduler, app.RoleWorker)
	for email := range mailboxes {
		r.startBackfillOf(email)
	}
	for email := range mailboxes {
		r.waitOf(email, a.Store(), "waiting for the clock", func(j jobs.Job) bool {
			return j.State == jobs.Waiting && strings.Contains(j.WaitingFor, "reasonable timeframe") && strings.Contains(j.WaitingFor, "clock")
		})
	}
	tokens := int64(0)
	for _, n := range r.fake.Meter().TokenCalls {
		tokens += n
	}
	if tokens > 4 {
		t.Errorf("%d calls for tokens by %d jobs, want few", tokens, len(mailboxes))
	}
	r.fake.ClearFaults()
	began := time.Now()
	for email := range mailboxes {
		if j := r.waitOf(email, a.Store(), "ended", terminal); j.State != jobs.Completed || j.Progress.Stored != 5 {
			t.Errorf("job = %+v, want all messages", j)
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("all were done %s after the clock was right, want seconds", took)
	}
}

// TestACeilingUnderOneCallsPriceEndsNothing: a live setting that lets no call through
// makes the work wait and say so; once it is raised, the work goes on.
func TestACeilingUnderOneCallsPriceEndsNothing(t *testing.T) {
	t.Parallel()
	r := newSite(t, 60)
	a := r.run(app.RoleScheduler, app.RoleWorker)
	revision := uint32(0)
	ceiling := func(share float64) {
		_, err := a.Store().ChangeSettings(t.Context(), "main", []string{"gmail"}, "ann", nil, func(_ sqlite.Setting, next uint32) (*sqlite.SettingChange, error) {
			revision = next
			text, err := json.Marshal(quota.Live{Revision: next, Changes: []quota.Change{{Lane: quota.Backfill, Key: quota.KeyCeiling, Value: share}}})
			return &sqlite.SettingChange{Change: "ceiling", Live: text}, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	ceiling(0.0002)
	r.startBackfill()
	j := r.wait(a.Store(), "waiting for the ceiling", func(j jobs.Job) bool { return j.State == jobs.Waiting && j.Failures > 1 })
	if !strings.Contains(j.WaitingFor, "raise the lane's ceiling") {
		t.Errorf("the job waits for %q, want what to do about the ceiling (revision %d)", j.WaitingFor, revision)
	}
	ceiling(0.8)
	if j := r.wait(a.Store(), "ended", terminal); j.State != jobs.Completed || j.Progress.Stored != 60 {
		t.Errorf("job = %+v, want all 60 messages", j)
	}
}
