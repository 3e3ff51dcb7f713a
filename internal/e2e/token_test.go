package e2e_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/jobs"
)

const methodToken = "token"

// withKey gives the project the key of a service account, whose tokens the fake
// gives out.
func (r *site) withKey() {
	r.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		r.t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		r.t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{"type": "service_account", "client_email": "sync@example.com", "client_id": "1",
		"private_key_id": "k", "private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"token_uri": r.cfg.Google.Endpoint.Reveal() + "/token"})
	if err != nil {
		r.t.Fatal(err)
	}
	path := filepath.Join(r.t.TempDir(), "key.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		r.t.Fatal(err)
	}
	p := r.cfg.Google.Projects["main"]
	p.Credentials = path
	r.cfg.Google.Projects["main"] = p
}

// tokenFault makes the token endpoint answer with a fault from now on, and the
// access tokens that are out worthless.
func (r *site) tokenFault(f fault.Fault) {
	r.t.Helper()
	f.Method = methodToken
	if err := r.fake.AddFault(f); err != nil {
		r.t.Fatal(err)
	}
	resp, err := http.Post(r.cfg.Google.Endpoint.Reveal()+"/_fake/mailbox", "application/json",
		strings.NewReader(`{"user":"`+ann+`","revoke_access_tokens":true}`))
	if err != nil {
		r.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		r.t.Fatalf("revoking answered %s", resp.Status)
	}
}

// TestATokenEndpointThatFailsForAWhile: nothing is lost, nobody is told to act, and
// the backfill goes on by itself.
func TestATokenEndpointThatFailsForAWhile(t *testing.T) {
	t.Parallel()
	const messages = 300
	r := newSite(t, messages)
	r.withKey()
	a := r.run(app.RoleScheduler, app.RoleWorker)
	r.startBackfill()
	r.wait(a.Store(), "under way", storedAtLeast(50))
	r.tokenFault(fault.Fault{Status: http.StatusServiceUnavailable, ForMS: 3000})
	r.wait(a.Store(), "waiting", func(j jobs.Job) bool { return j.State == jobs.Waiting && j.Failures > 0 })
	j := r.wait(a.Store(), "ended", terminal)
	if j.State != jobs.Completed || j.Progress.Stored != messages || j.Progress.Failed != 0 {
		t.Errorf("job = %+v, want all %d messages and none given up", j, messages)
	}
	r.arrived(a.Store())
	r.nothingSpent()
	// A worker that finds that nothing comes asks for a message that it has.
	if n := r.fake.Meter().Refetched(); n > 2 {
		t.Errorf("%d messages were fetched twice, want one or two that asked whether Google is out", n)
	}
}

// TestARevokedGrantBlocksUntilItIsGivenAgain: the endpoint is not asked again and
// again, and a resume goes on where the backfill stood.
func TestARevokedGrantBlocksUntilItIsGivenAgain(t *testing.T) {
	t.Parallel()
	const messages = 300
	r := newSite(t, messages)
	r.withKey()
	s := r.open()
	ended := make(chan struct{})
	stop := r.runUntil(ended)
	r.startBackfill()
	r.wait(s, "under way", storedAtLeast(50))
	before := r.fake.Meter().TokenCalls[ann]
	r.tokenFault(fault.Fault{Reason: "invalid_grant"})
	blocked := r.wait(s, "blocked", in(jobs.Blocked))
	if !strings.Contains(blocked.LastError, "invalid_grant") || blocked.Progress.Stored < 50 || blocked.Progress.Failed != 0 {
		t.Errorf("blocked = %+v, want it to name the grant and to blame no message", blocked)
	}
	r.drained()
	if n := r.fake.Meter().TokenCalls[ann] - before; n > 2 {
		t.Errorf("%d calls for a token after the grant was revoked, want 2 at most", n)
	}
	close(ended)
	stop()

	r.fake.ClearFaults()
	r.run(app.RoleScheduler, app.RoleWorker)
	r.resume()
	j := r.wait(s, "completed", in(jobs.Completed))
	if j.Progress.Stored != messages || j.Checkpoint.HistoryID != blocked.Checkpoint.HistoryID {
		t.Errorf("job = %+v, want all %d messages, from the same history id", j, messages)
	}
	r.arrived(s)
	r.nothingSpent()
	if n := r.fake.Meter().Refetched(); n != 0 {
		t.Errorf("%d messages were fetched twice", n)
	}
}
