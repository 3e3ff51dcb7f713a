package quota_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/googleapi"

	"headroom/quota"
	"headroom/quota/price"
)

// TestACooldownIsSaid: the process that Google refused, and one that only hears of
// it, say what was refused, in Google's words and until when; one line tells of it.
func TestACooldownIsSaid(t *testing.T) {
	envelope := func(reason, message string) string {
		return fmt.Sprintf(`{"error":{"code":403,"message":%q,"errors":[{"reason":%q}]}}`, message, reason)
	}
	later := time.Now().Add(3 * time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")
	for _, tt := range []struct {
		name, body string
		kind       string
		others     bool // are closed too
		until      time.Duration
	}{
		{"day", envelope("dailyLimitExceeded", "Daily Limit\u202e Exceeded"), `Google's limit of the project's day (dailyLimitExceeded: "Daily Limit Exceeded")`, true, 0},
		{"retry after", envelope("rateLimitExceeded", "User-rate limit exceeded.  Retry after "+later),
			`Google's limit of the user's bandwidth or day (rateLimitExceeded: "User-rate limit exceeded. Retry after ` + later + `")`, false, 3 * time.Hour},
		{"abuse", envelope("quotaExceeded", "Calendar usage limits exceeded."), `Google's undisclosed usage limit (quotaExceeded: "Calendar usage limits exceeded.")`, false, 2 * time.Hour},
		{"minute", envelope("userRateLimitExceeded", "User Rate Limit Exceeded"), `Google's limit of the user's minute (userRateLimitExceeded: "User Rate Limit Exceeded")`, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprint(w, tt.body)
			}))
			t.Cleanup(server.Close)
			core, logged := observer.New(zap.InfoLevel)
			reg, prefix := prometheus.NewRegistry(), ownPrefix(t)
			ledger := func(log *zap.Logger, reg prometheus.Registerer) *quota.Ledger {
				l, err := quota.NewLedger(quota.Options{Redis: newClient(t, realRedis.Addr), KeyPrefix: prefix, Fresh: true, Log: log, Registerer: reg,
					Projects: map[string]quota.Project{"p": {Lists: []*price.List{gmailWith(t, 6000, 1_200_000)}}}})
				if err != nil {
					t.Fatal(err)
				}
				return l
			}
			first, second := ledger(zap.New(core), reg), ledger(nil, nil)
			service := gmailClient(t, server.URL, &quota.Transport{Limiter: first})
			ctx := quota.WithCaller(t.Context(), ann(quota.Interactive))
			done := make(chan error, 3)
			for range 3 { // three on their way together
				go func() { _, err := service.Users.GetProfile("me").Context(ctx).Do(); done <- err }()
			}
			refused := 0
			for range 3 {
				err := <-done
				if answer, ok := errors.AsType[*googleapi.Error](err); ok && answer.Code == http.StatusForbidden {
					refused++
				} else if _, denied := errors.AsType[*quota.DeniedError](err); !denied {
					t.Error(err)
				}
			}
			if refused == 0 {
				t.Fatal("Google refused nothing")
			}
			for name, l := range map[string]*quota.Ledger{"the process that was refused": first, "another process": second} {
				for _, user := range []string{"ann@example.com", "ben@example.com"} {
					if user != "ann@example.com" && !tt.others {
						continue
					}
					_, err := l.Take(t.Context(), caller(user, quota.Backfill), "gmail", 20)
					denied, ok := errors.AsType[*quota.DeniedError](err)
					if !ok || denied.Why() != tt.kind || !strings.Contains(err.Error(), tt.kind) {
						t.Errorf("%s tells %s %v, want %s", name, user, err, tt.kind)
						continue
					}
					if tt.until > 0 && (denied.RetryAfter < tt.until-time.Minute || denied.RetryAfter > tt.until+time.Minute) {
						t.Errorf("%s tells %s to wait for %s, want %s", name, user, denied.RetryAfter, tt.until)
					}
				}
			}
			if lines := logged.All(); len(lines) != 1 || lines[0].ContextMap()["google_says"] == "" || lines[0].ContextMap()["until"] == nil {
				t.Errorf("logged %+v, want one line", lines)
			}
			if n := value(t, reg, "headroom_quota_cooldowns_started_total"); n != 1 {
				t.Errorf("%v cool-downs counted, want one", n)
			}
			d, err := second.Peek(t.Context(), ann(quota.Interactive), "gmail")
			about := d.User.Cooldown
			if tt.others {
				about = d.Project.Cooldown
			}
			if err != nil || about.String() != tt.kind || about.Until.IsZero() {
				t.Errorf("Peek says %+v, %v", about, err)
			}
		})
	}
}

// TestAccountsComeBackOneByOne: 240 accounts that wait for a project's cool-down
// are told moments that are spread over a third of a minute; people are not.
func TestAccountsComeBackOneByOne(t *testing.T) {
	ledgers, now := clocked(t, newClient(t, realRedis.Addr), quota.Project{Lists: []*price.List{gmailWith(t, 6000, 1_200_000)}}, 1)
	charge, _, _ := take(t, ledgers[0], "ann@example.com", quota.Backfill)
	if err := ledgers[0].Answered(t.Context(), charge, quota.Refusal{Scope: quota.ScopeDay, Reason: "dailyLimitExceeded", Wait: time.Hour}); err != nil {
		t.Fatal(err)
	}
	seconds := map[int]int{}
	for i := range 240 {
		for _, lane := range quota.Lanes {
			_, err := ledgers[0].Take(t.Context(), caller(fmt.Sprintf("user%d@example.com", i), lane), "gmail", 20)
			denied, ok := errors.AsType[*quota.DeniedError](err)
			if !ok || !denied.At.Equal(now.Add(time.Hour)) || denied.Later < 0 || denied.Later > 20*time.Second || lane == quota.Interactive && denied.Later > 0 {
				t.Fatalf("%v: %+v", err, denied)
			}
			if lane == quota.Backfill {
				seconds[int(denied.Later.Seconds())]++
			}
		}
	}
	for s := range 20 {
		if n := seconds[s]; n < 2 || n > 30 {
			t.Errorf("%d of 240 accounts come back in second %d", n, s)
		}
	}
}

// TestARefusalOfAFeatureClosesThatOnly: reading goes on, and what sends is refused by
// every process, in Google's words.
func TestARefusalOfAFeatureClosesThatOnly(t *testing.T) {
	ctx := quota.WithCaller(context.Background(), ann(quota.Interactive))
	later := time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")
	send := func(s *gmail.Service) error {
		_, err := s.Users.Messages.Send("me", &gmail.Message{Raw: "eA"}).Context(ctx).Do()
		return err
	}
	draft := func(s *gmail.Service) error {
		_, err := s.Users.Drafts.Send("me", &gmail.Draft{}).Context(ctx).Do()
		return err
	}
	filter := func(s *gmail.Service) error {
		_, err := s.Users.Settings.Filters.List("me").Context(ctx).Do()
		return err
	}
	read := func(s *gmail.Service) error { _, err := s.Users.Messages.Get("me", "1").Context(ctx).Do(); return err }
	list := func(s *gmail.Service) error { _, err := s.Users.Messages.List("me").Context(ctx).Do(); return err }
	type call = func(*gmail.Service) error
	for _, tt := range []struct {
		name         string
		first        call
		closed, open []call
		wait         time.Duration // that the refused call's own kind may wait; 0: it is closed
	}{
		{"Mail sending", send, []call{send, draft}, []call{filter, read, list}, 0},
		{"Forwarding rules", filter, []call{filter}, []call{send, read, list}, 0},
		{"mail sending", read, []call{send, draft}, []call{filter, read, list}, 5 * time.Second}, // of a call that is no part of it
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			words := "User-rate limit exceeded.  Retry after " + later + " (" + tt.name + ")"
			refuse := make(chan struct{}, 1)
			refuse <- struct{}{}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				select {
				case <-refuse:
					w.WriteHeader(http.StatusTooManyRequests)
					fmt.Fprintf(w, `{"error":{"code":429,"message":%q,"errors":[{"reason":"rateLimitExceeded"}]}}`, words)
				default:
					fmt.Fprint(w, "{}")
				}
			}))
			t.Cleanup(server.Close)
			prefix := ownPrefix(t)
			var services []*gmail.Service
			var ledgers []*quota.Ledger
			for range 2 {
				l, err := quota.NewLedger(quota.Options{Redis: newClient(t, realRedis.Addr), KeyPrefix: prefix, Fresh: true, Scale: 60,
					Projects: map[string]quota.Project{"p": {Lists: []*price.List{gmailWith(t, 6000, 1_200_000)}}}})
				if err != nil {
					t.Fatal(err)
				}
				ledgers = append(ledgers, l)
				services = append(services, gmailClient(t, server.URL, &quota.Transport{Limiter: l}))
			}
			if answer, ok := errors.AsType[*googleapi.Error](tt.first(services[0])); !ok || answer.Code != http.StatusTooManyRequests {
				t.Fatalf("the refusal does not reach the caller: %v", answer)
			}
			for i, service := range services {
				for _, do := range tt.closed {
					err := do(service)
					denied, ok := errors.AsType[*quota.DeniedError](err)
					if !ok || denied.Limit != quota.LimitFeature || denied.RetryAfter < 59*time.Minute || !strings.Contains(err.Error(), tt.name) {
						t.Errorf("process %d: a call of what was refused: %v", i+1, err)
					}
				}
				for _, do := range tt.open {
					err := do(service)
					if denied, ok := errors.AsType[*quota.DeniedError](err); ok && denied.RetryAfter < tt.wait {
						wait(t.Context(), denied.RetryAfter)
						err = do(service)
					}
					if err != nil {
						t.Errorf("process %d: another call: %v", i+1, err)
					}
				}
			}
			closed, err := ledgers[1].ClosedFeatures(t.Context(), ann(quota.Interactive), "gmail")
			if err != nil || len(closed) != 1 || closed[0].Feature != strings.ToLower(tt.name) || !strings.Contains(closed[0].Words, tt.name) {
				t.Errorf("closed: %+v, %v", closed, err)
			}
		})
	}
}
