package google

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/jobs"
	"headroom/quota"
)

func TestAMailboxIsReadWhole(t *testing.T) {
	fake, box, url := newFake(t, fakegoogle.Options{})
	g := newTestGoogle(t, Options{Endpoint: url})
	want := map[string]string{}
	for i := range 620 {
		raw := fmt.Sprintf("Subject: message %d\r\n\r\n\xff body %s\r\n", i, strings.Repeat("x", i%7))
		want[box.Add([]byte(raw), "INBOX")] = raw
	}
	m := open(t, g)

	profile, err := m.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := (jobs.Profile{Email: ann.Email, Messages: 620, HistoryID: box.HistoryID()}); profile != want {
		t.Errorf("profile %+v, want %+v", profile, want)
	}

	var ids []string
	page, err := m.List(t.Context(), jobs.Search{}, "")
	if err != nil || len(page.IDs) != 500 || page.Next == "" {
		t.Fatalf("first page: %d ids, next %q, %v, want 500 ids and a next page", len(page.IDs), page.Next, err)
	}
	ids = page.IDs
	page, err = m.List(t.Context(), jobs.Search{}, page.Next)
	if err != nil || len(page.IDs) != 120 || page.Next != "" {
		t.Fatalf("second page: %d ids, next %q, %v, want the last 120", len(page.IDs), page.Next, err)
	}
	ids = append(ids, page.IDs...)
	for _, id := range ids[:20] {
		var raw bytes.Buffer
		f, err := m.Fetch(t.Context(), id, &raw)
		if err != nil {
			t.Fatal(err)
		}
		if raw.String() != want[id] {
			t.Errorf("message %s is %q, want %q", id, &raw, want[id])
		}
		if f.ID != id || f.ThreadID == "" || f.HistoryID == 0 || f.InternalDate.IsZero() || !slices.Contains(f.Labels, "INBOX") {
			t.Errorf("message %s came without its fields: %+v", id, f)
		}
	}
	user := fake.Meter().User(ann.Email)
	calls := map[string]int64{"gmail.users.getProfile": 1, "gmail.users.messages.list": 2, "gmail.users.messages.get": 20}
	if diff := cmp.Diff(calls, user.CallsByMethod); diff != "" {
		t.Errorf("calls at the fake (-want +got):\n%s", diff)
	}
	used, err := g.opts.Ledger.Peek(t.Context(), quota.Caller{Project: project, User: ann.Email, Lane: quota.Interactive}, "gmail")
	if err != nil {
		t.Fatal(err)
	}
	if got := used.Usage[0].Used; got != user.Units || got != 1+2*5+20*20 {
		t.Errorf("the ledger charged %d units and the fake saw %d, want 411", got, user.Units)
	}
	if g.budget.used != 0 {
		t.Errorf("%d bytes of the budget still held", g.budget.used)
	}
}

func TestFetchReturnsTheErrorOfWhoKeepsTheMessage(t *testing.T) {
	_, box, url := newFake(t, fakegoogle.Options{})
	g := newTestGoogle(t, Options{Endpoint: url})
	id := box.Add([]byte("Subject: x\r\n\r\n"))
	full := errors.New("disk full")
	if _, err := open(t, g).Fetch(t.Context(), id, brokenDisk{full}); !errors.Is(err, full) {
		t.Errorf("Fetch = %v, want the writer's own error", err)
	}
	if g.budget.used != 0 {
		t.Errorf("%d bytes of the budget still held", g.budget.used)
	}
}

type brokenDisk struct{ err error }

func (b brokenDisk) Write([]byte) (int, error) { return 0, b.err }

func TestMetadataBringsNoBody(t *testing.T) {
	fake, box, url := newFake(t, fakegoogle.Options{})
	m := open(t, newTestGoogle(t, Options{Endpoint: url}))
	raw := "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nFrom: bob@example.com\r\n\r\n" + strings.Repeat("body ", 1000)
	id := box.Add([]byte(raw), "INBOX", "UNREAD")
	f, err := m.Metadata(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if f.ID != id || f.Subject != "Grüße" || f.SizeEstimate != int64(len(raw)) || f.InternalDate.IsZero() || len(f.Labels) != 2 {
		t.Errorf("got %+v, want the subject, size, date and labels", f)
	}
	if bytes := fake.Meter().User(ann.Email).Bytes; bytes != 0 {
		t.Errorf("%d bytes of bodies were delivered", bytes)
	}
	box.Delete(id)
	_, err = m.Metadata(t.Context(), id)
	if call, ok := errors.AsType[*jobs.CallError](err); !ok || call.Class != jobs.ClassGone {
		t.Errorf("of a deleted message: %v, want class %s", err, jobs.ClassGone)
	}
}

func TestASearchThatGoogleRefuses(t *testing.T) {
	fake, _, url := newFake(t, fakegoogle.Options{})
	if err := fake.AddFault(fault.Fault{Method: "gmail.users.messages.list", Status: 400, Message: "Invalid label: Work"}); err != nil {
		t.Fatal(err)
	}
	_, err := open(t, newTestGoogle(t, Options{Endpoint: url})).List(t.Context(), jobs.Search{Labels: []string{"Work"}}, "")
	if call, ok := errors.AsType[*jobs.CallError](err); !ok || call.Class != jobs.ClassSearch || !strings.Contains(err.Error(), "label ids") {
		t.Errorf("got %v, want class %s and what to check", err, jobs.ClassSearch)
	}
}

func TestFaultsOfGoogleHaveTheirClass(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fault  fault.Fault
		class  jobs.Class
		reason string
	}{
		{"server fault", fault.Fault{Status: 500}, jobs.ClassTransient, "backendError"},
		{"error page", fault.Fault{Status: 502, HTML: true}, jobs.ClassTransient, "Bad Gateway"},
		{"page instead of an answer", fault.Fault{Status: 200, HTML: true}, jobs.ClassTransient, "badJSON"},
		{"connection reset", fault.Fault{Close: true}, jobs.ClassTransient, ""},
		{"cut in the middle", fault.Fault{Truncate: true}, jobs.ClassTransient, "truncated"},
		{"nothing in the answer", fault.Fault{Status: 200, Body: "{}"}, jobs.ClassTransient, "noMessage"},
		{"a message without a name", fault.Fault{Status: 200, Body: `{"raw":"eA"}`}, jobs.ClassTransient, "noMessage"},
		{"an empty message", fault.Fault{Status: 200, Body: `{"id":"ID"}`}, "", ""},
		{"empty answer", fault.Fault{Status: 200, Body: " "}, jobs.ClassTransient, "badJSON"},
		{"another message", fault.Fault{Status: 200, Body: `{"id":"other","raw":"eA"}`}, jobs.ClassTransient, "wrongID"},
		{"no raw", fault.Fault{Status: 200, Body: `{"id":"ID","sizeEstimate":9}`}, jobs.ClassTransient, "badRaw"},
		{"raw that is no base64", fault.Fault{Status: 200, Body: `{"id":"ID","raw":"!!"}`}, jobs.ClassTransient, "badRaw"},
		{"a field of another kind", fault.Fault{Status: 200, Body: `{"historyId":"99999999999999999999999"}`}, jobs.ClassTransient, "noMessage"},
		{"an id that cannot be read", fault.Fault{Status: 200, Body: `{"id":["ID"],"raw":"eA"}`}, jobs.ClassItem, "field id cannot be read: it is a list"},
		{"a raw that cannot be read", fault.Fault{Status: 200, Body: `{"id":"ID","raw":{}}`}, jobs.ClassItem, "field raw cannot be read: it is an object"},
		{"a size that cannot be read, and no raw", fault.Fault{Status: 200, Body: `{"id":"ID","sizeEstimate":"big"}`}, jobs.ClassTransient, "badRaw"},
		{"odd numbers beside a raw", fault.Fault{Status: 200, Body: `{"id":"ID","historyId":[],"internalDate":{},"sizeEstimate":"big","labelIds":{},"raw":"eA"}`}, "", ""},
		{"null", fault.Fault{Status: 200, Body: `null`}, jobs.ClassTransient, "badJSON"},
		{"a list", fault.Fault{Status: 200, Body: `[]`}, jobs.ClassTransient, "badJSON"},
		{"gone", fault.Fault{Reason: "notFound"}, jobs.ClassGone, "notFound"},
		{"quota", fault.Fault{Reason: "rateLimitExceeded"}, jobs.ClassQuota, "rateLimitExceeded"},
		{"scope", fault.Fault{Reason: "insufficientPermissions"}, jobs.ClassAccount, "insufficientPermissions"},
		{"API off", fault.Fault{Reason: "accessNotConfigured"}, jobs.ClassProject, "accessNotConfigured"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fake, box, url := newFake(t, fakegoogle.Options{})
			id := box.Add([]byte("Subject: x\r\n\r\n" + strings.Repeat("body ", 2000)))
			tt.fault.Method = "gmail.users.messages.get"
			tt.fault.Body = strings.ReplaceAll(tt.fault.Body, "ID", id)
			if err := fake.AddFault(tt.fault); err != nil {
				t.Fatal(err)
			}
			g := newTestGoogle(t, Options{Endpoint: url})
			_, err := open(t, g).Fetch(t.Context(), id, io.Discard)
			call, _ := errors.AsType[*jobs.CallError](err)
			switch {
			case tt.class == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case tt.class != "" && (call == nil || call.Class != tt.class || (tt.reason != "" && call.Reason != tt.reason)):
				t.Errorf("got %v, want %s, %s", err, tt.class, tt.reason)
			}
			if calls := fake.Meter().User(ann.Email).Calls; calls != 1 {
				t.Errorf("%d calls, want 1: retries are not this package's", calls)
			}
			if g.budget.used != 0 {
				t.Errorf("%d bytes of the budget still held", g.budget.used)
			}
		})
	}
}

func TestADeadPageTokenIsACursor(t *testing.T) {
	_, box, url := newFake(t, fakegoogle.Options{})
	for range 501 {
		box.Add([]byte("Subject: x\r\n\r\n"))
	}
	m := open(t, newTestGoogle(t, Options{Endpoint: url}))
	page, err := m.List(t.Context(), jobs.Search{}, "")
	if err != nil {
		t.Fatal(err)
	}
	box.ExpirePageTokens()
	_, err = m.List(t.Context(), jobs.Search{}, page.Next)
	if call, ok := errors.AsType[*jobs.CallError](err); !ok || call.Class != jobs.ClassCursor {
		t.Errorf("a dead page token became %v, want class %s", err, jobs.ClassCursor)
	}
}

func TestARefusedCallIsNotMade(t *testing.T) {
	fake, box, url := newFake(t, fakegoogle.Options{})
	id := box.Add([]byte("Subject: x\r\n\r\n"))
	g := newTestGoogle(t, Options{Endpoint: url, Ledger: newLedger(t, 1)})
	m, err := g.Mailbox(t.Context(), ann, quota.Backfill, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 { // the pace stops it long before
		if _, err = m.Fetch(t.Context(), id, io.Discard); err != nil {
			break
		}
	}
	denied, ok := errors.AsType[*quota.DeniedError](err)
	if !ok || denied.RetryAfter <= 0 || denied.Caller.User != ann.Email || denied.Caller.Lane != quota.Backfill {
		t.Fatalf("got %v, want a refusal of the ledger for %s in lane backfill", err, ann.Email)
	}
	before := fake.Meter().User(ann.Email).Calls
	if _, err := m.Fetch(t.Context(), id, io.Discard); err == nil {
		t.Error("a second call was admitted at once")
	}
	if after := fake.Meter().User(ann.Email).Calls; after != before {
		t.Errorf("a refused call reached Google: %d calls, then %d", before, after)
	}
}

func TestRequestsAskAsGmailWantsThem(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]*http.Request{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.URL.Path] = r
		mu.Unlock()
		fmt.Fprint(w, `{"id":"a/b?c","historyId":"7","emailAddress":"ann@example.com","messages":[{"id":"a"},null,{"id":""}],"raw":"eA=="}`)
	}))
	t.Cleanup(server.Close)
	m := open(t, newTestGoogle(t, Options{Endpoint: server.URL}))
	if _, err := m.Profile(t.Context()); err != nil {
		t.Fatal(err)
	}
	page, err := m.List(t.Context(), jobs.Search{Labels: []string{"A", "B"}, Query: "after:5", SpamTrash: true}, "to ken")
	if err != nil || !slices.Equal(page.IDs, []string{"a"}) {
		t.Fatalf("page %+v, %v, want the one id", page, err)
	}
	var raw bytes.Buffer
	if f, err := m.Fetch(t.Context(), "a/b?c", &raw); err != nil || raw.String() != "x" || !f.InternalDate.IsZero() {
		t.Errorf("got %q, %+v, %v, want raw x and no date", &raw, f, err)
	}
	for path, want := range map[string]map[string]string{
		"/gmail/v1/users/me/profile":        {},
		"/gmail/v1/users/me/messages":       {"maxResults": "500", "pageToken": "to ken", "includeSpamTrash": "true", "q": "after:5", "labelIds": "A"},
		"/gmail/v1/users/me/messages/a/b?c": {"format": "raw"},
	} {
		r := seen[path]
		if r == nil {
			t.Errorf("nobody asked for %s", path)
			continue
		}
		for key, value := range want {
			if got := r.URL.Query().Get(key); got != value {
				t.Errorf("%s: %s is %q, want %q", path, key, got, value)
			}
		}
		if got := r.Header.Get("Authorization"); got != "Bearer "+ann.Email {
			t.Errorf("%s: Authorization %q", path, got)
		}
		if agent := r.UserAgent(); !strings.Contains(agent, "gzip") || r.Header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("%s: user agent %q, want gzip in it, and asked for", path, agent)
		}
	}
}

func TestAMessageWithoutAnIDIsNotAsked(t *testing.T) {
	fake, _, url := newFake(t, fakegoogle.Options{})
	_, err := open(t, newTestGoogle(t, Options{Endpoint: url})).Fetch(t.Context(), "", io.Discard)
	if call, ok := errors.AsType[*jobs.CallError](err); !ok || call.Class != jobs.ClassItem {
		t.Errorf("got %v, want class %s", err, jobs.ClassItem)
	}
	if calls := fake.Meter().User(ann.Email).Calls; calls != 0 {
		t.Errorf("%d calls were made", calls)
	}
}

// TestManyLargeFetchesFitInASmallBudget runs fetches of bodies whose length is
// known, or not (compressed), against a budget that holds only a part of them.
func TestManyLargeFetchesFitInASmallBudget(t *testing.T) {
	_, box, url := newFake(t, fakegoogle.Options{Scale: 1000})
	random := rand.New(rand.NewPCG(1, 1))
	sizes := map[string]int{}
	largest := 0
	for range 8 {
		raw := make([]byte, 1+random.IntN(200<<10))
		for i := range raw {
			raw[i] = byte(random.Uint32())
		}
		sizes[box.Add(raw)] = len(raw)
		largest = max(largest, len(raw))
	}
	const budget = 5 << 20
	g := newTestGoogle(t, Options{Endpoint: url, Ledger: newLedger(t, 1000), Budget: budget})
	m, err := g.Mailbox(t.Context(), ann, quota.Interactive, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for id, size := range sizes {
		all.Go(func() {
			counted := &countingWriter{Writer: io.Discard}
			if _, err := m.Fetch(ctx, id, counted); err != nil || counted.n != int64(size) {
				t.Errorf("message %s came as %d bytes, %v, want %d", id, counted.n, err, size)
			}
		})
	}
	all.Wait()
	most := int64(budget + heldPerByte*(largest*4/3+2*nextStep))
	if g.budget.peak > most || g.budget.peak < budget/2 {
		t.Errorf("%d bytes were held at most, want up to %d", g.budget.peak, most)
	}
	if g.budget.used != 0 {
		t.Errorf("%d bytes still held", g.budget.used)
	}
}

func TestMailboxRefusesWhomItDoesNotKnow(t *testing.T) {
	g := newTestGoogle(t, Options{Endpoint: "http://127.0.0.1:1"})
	if _, err := g.Mailbox(t.Context(), jobs.Account{Email: ann.Email, Project: "other"}, quota.Sync, 0); !errors.Is(err, quota.ErrUnknownProject) {
		t.Errorf("unknown project: %v", err)
	}
	if _, err := g.Mailbox(t.Context(), ann, "vip", 0); err == nil {
		t.Error("unknown lane accepted")
	}
	if _, err := g.Mailbox(t.Context(), jobs.Account{Project: project}, quota.Sync, 0); err == nil {
		t.Error("account without an address accepted")
	}
}

func TestClientsAreSharedAndBounded(t *testing.T) {
	g := newTestGoogle(t, Options{Endpoint: "http://127.0.0.1:1"})
	first := open(t, g)
	if again := open(t, g); again.service != first.service {
		t.Error("one account has two clients, so two tokens")
	}
	for i := range maxAccounts {
		if _, err := g.Mailbox(t.Context(), jobs.Account{Email: fmt.Sprint(i, "@example.com"), Project: project}, quota.Sync, 0); err != nil {
			t.Fatal(err)
		}
	}
	if len(g.accounts) != maxAccounts || g.recent.Len() != maxAccounts {
		t.Errorf("%d clients kept, want %d", len(g.accounts), maxAccounts)
	}
	if again := open(t, g); again.service == first.service {
		t.Error("the client used longest ago was kept")
	}
}
