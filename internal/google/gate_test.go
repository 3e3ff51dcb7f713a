package google

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/jobs"
	"headroom/quota"
)

// gateRig is a project with many mailboxes.
type gateRig struct {
	fake   *fakegoogle.Server
	google *Google
	key    string // path
	boxes  []*Mailbox
	logs   *observer.ObservedLogs
}

func newGateRig(t *testing.T, accounts ...string) *gateRig {
	t.Helper()
	fake, _, url := newFake(t, fakegoogle.Options{})
	core, logs := observer.New(zap.InfoLevel)
	r := &gateRig{fake: fake, key: writeKey(t, url, nil), logs: logs}
	r.google = newTestGoogle(t, Options{Endpoint: url, Projects: map[string]Project{project: {Credentials: r.key}}, Log: zap.New(core)})
	for _, email := range accounts {
		if err := fake.Load(email, "generate:1"); err != nil {
			t.Fatal(err)
		}
		box, err := r.google.Mailbox(t.Context(), jobs.Account{Email: email, Project: project}, quota.Interactive, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		r.boxes = append(r.boxes, box)
	}
	return r
}

// profiles asks all mailboxes for their profiles at once.
func (r *gateRig) profiles(t *testing.T) []error {
	errs := make([]error, len(r.boxes))
	var all sync.WaitGroup
	for i, box := range r.boxes {
		all.Go(func() { _, errs[i] = box.Profile(t.Context()) })
	}
	all.Wait()
	return errs
}

func (r *gateRig) tokenCalls() (n int64) {
	for _, calls := range r.fake.Meter().TokenCalls {
		n += calls
	}
	return n
}

func accountsAt(domain string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("u%d@%s", i, domain))
	}
	return all
}

func classOfErr(err error) jobs.Class {
	if call, ok := errors.AsType[*jobs.CallError](err); ok {
		return call.Class
	}
	return ""
}

// A cause of the project's is asked about by one call now and then, for all
// accounts, and all go on when it is over.
func TestOneProbesForAProject(t *testing.T) {
	for _, tt := range []struct {
		name, says string
		fault      fault.Fault
		before     string // which gate is shut
	}{
		{"a clock that Google calls wrong", "clock", fault.Fault{Method: "token", Reason: "invalid_grant",
			Message: "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat and exp values in the JWT claim."}, beforeTokens},
		{"a key that was rotated", "key", fault.Fault{Method: "token", Reason: "invalid_grant", Message: "Invalid JWT Signature."}, beforeTokens},
		{"a client that was deleted", "credentials", fault.Fault{Method: "token", Reason: "deleted_client"}, beforeTokens},
		{"a delegation that is not known yet", "domain-wide delegation", fault.Fault{Method: "token", Reason: "unauthorized_client"}, beforeDomain},
		{"an API that is not enabled", "enable the Gmail API", fault.Fault{Method: "gmail.users.getProfile", Reason: "accessNotConfigured"}, beforeGmail},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newGateRig(t, accountsAt("example.com", 40)...)
			if err := r.fake.AddFault(tt.fault); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				for _, err := range r.profiles(t) {
					call, _ := errors.AsType[*jobs.CallError](err)
					if call == nil || call.Class != jobs.ClassProject || !strings.Contains(err.Error(), tt.says) {
						t.Fatalf("got %v, want a cause of the project's that says %q", err, tt.says)
					}
				}
			}
			if n := r.tokenCalls(); tt.before != beforeGmail && n > 3 {
				t.Errorf("%d calls for tokens, want one or a few", n)
			}
			if n := testutil.ToFloat64(r.google.metrics.gates.WithLabelValues(project, tt.before)); n != 1 {
				t.Errorf("the metric says %v, want 1", n)
			}
			if n := r.logs.FilterLevelExact(zap.ErrorLevel).Len(); n != 1 {
				t.Errorf("%d errors logged, want one alarm: %v", n, r.logs.All())
			}
			r.fake.ClearFaults()
			_, err := r.boxes[0].Profile(t.Context())
			if call, _ := errors.AsType[*jobs.CallError](err); call == nil || call.Wait <= 0 || call.Wait > 2*firstProbe {
				t.Fatalf("got %v, want it to say when to try again, within %s", err, 2*firstProbe)
			} else {
				<-time.After(call.Wait)
			}
			for _, err := range r.profiles(t) {
				if err != nil {
					t.Errorf("after the cause is over: %v", err)
				}
			}
			if n := testutil.ToFloat64(r.google.metrics.gates.WithLabelValues(project, tt.before)); n != 0 {
				t.Errorf("the metric says %v at the end, want 0", n)
			}
		})
	}
}

// What one domain has not granted stops nobody else.
func TestADelegationIsADomainsOwn(t *testing.T) {
	r := newGateRig(t, "a@one.example", "b@two.example")
	if err := r.fake.AddFault(fault.Fault{Method: "token", User: "a@one.example", Reason: "unauthorized_client"}); err != nil {
		t.Fatal(err)
	}
	errs := r.profiles(t)
	if classOfErr(errs[0]) != jobs.ClassProject || errs[1] != nil {
		t.Errorf("got %v, want the first refused only", errs)
	}
}

// An answer about one message does not stop the project.
func TestOneMessagesAnswerStopsNoProject(t *testing.T) {
	r := newGateRig(t, "a@one.example")
	if err := r.fake.AddFault(fault.Fault{Method: "gmail.users.messages.get", Reason: "accessNotConfigured"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.boxes[0].Metadata(t.Context(), "m1"); classOfErr(err) != jobs.ClassProject {
		t.Fatalf("got %v, want the fault", err)
	}
	if _, err := r.boxes[0].Profile(t.Context()); err != nil {
		t.Errorf("another call: %v", err)
	}
}

// A key that is put in place of another is used without a restart.
func TestARotatedKeyIsReadAgain(t *testing.T) {
	r := newGateRig(t)
	next, err := os.ReadFile(writeKey(t, "https://token.example", func(f map[string]string) { f["client_email"] = "next@example.com" }))
	if err != nil {
		t.Fatal(err)
	}
	file := r.google.keys[project]
	if got := file.current().Email; got != "sync@example.com" {
		t.Fatalf("the key is that of %s", got)
	}
	for _, step := range []struct{ text, want string }{
		{"{", "sync@example.com"}, {string(next), "next@example.com"},
	} {
		if err := os.WriteFile(r.key, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := file.current().Email; got != step.want {
			t.Errorf("after writing %d bytes the key is that of %s, want %s", len(step.text), got, step.want)
		}
	}
}
