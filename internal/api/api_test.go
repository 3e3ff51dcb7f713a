package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/blob"
	"headroom/internal/control/quotaview"
	"headroom/internal/lab/localredis"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

const ann = "ann@example.com"

// served is a process with the role web, and a client of its HTTP interface.
type served struct {
	t     *testing.T
	base  string // http://host:port/api/v1
	store *sqlite.Store
	blobs *blob.Folder
	redis *localredis.Server
}

func serve(t *testing.T, change func(*config.Config)) *served {
	t.Helper()
	redis, err := localredis.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Stop)
	dir := t.TempDir()
	cfg, err := config.Load(config.Options{Optional: true, Set: []string{
		"redis.url=" + redis.URL(), "store.path=" + dir + "/headroom.db", "store.blobs=" + dir + "/blobs",
		"web.listen=127.0.0.1:0", "google.endpoint=http://127.0.0.1:1", "google.projects.main.prices=gmail-2026-05",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&cfg)
	}
	// Routing a log of the test would log after its end.
	a, err := app.New(t.Context(), cfg, app.Options{Roles: []app.Role{app.RoleWeb}, Version: "v1", Log: zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel)), FreshRedis: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
	return &served{t, "http://" + a.Addr().String() + "/api/v1", a.Store(), a.Blobs(), redis}
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// send sends a request, with a body if it is not nil; change may be nil.
func (s *served) send(method, path string, body any, change func(*http.Request)) answer {
	s.t.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			s.t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, bytes.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	if method != http.MethodGet {
		req.Header.Set("Content-Type", "application/json")
	}
	if change != nil {
		change(req)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// ask expects a status and returns the body.
func ask[T any](s *served, status int, method, path string, body any) T {
	s.t.Helper()
	a := s.send(method, path, body, nil)
	var v T
	if err := json.Unmarshal([]byte(a.body), &v); err != nil || a.status != status {
		s.t.Fatalf("%s %s = %d %s, %v, want %d", method, path, a.status, a.body, err, status)
	}
	return v
}

// fails expects a problem with a text in it.
func (s *served) fails(status int, text, method, path string, body any) {
	s.t.Helper()
	a := s.send(method, path, body, nil)
	a.problem(s.t, status, text)
}

func (a answer) problem(t *testing.T, status int, text string) {
	t.Helper()
	var p struct {
		Status        int
		Title, Detail string
	}
	err := json.Unmarshal([]byte(a.body), &p)
	if err != nil || a.status != status || p.Status != status || p.Title != http.StatusText(status) ||
		a.header.Get("Content-Type") != "application/problem+json" || !strings.Contains(p.Detail, text) {
		t.Errorf("answer = %d %s %s, want the problem %d with %q", a.status, a.header.Get("Content-Type"), a.body, status, text)
	}
}

type page[T any] struct {
	Items []T
	Next  string
}

type steered struct {
	Job     jobs.Job
	Changed bool
	Created bool
	Retried int
}

func TestAPIAccounts(t *testing.T) {
	s := serve(t, nil)
	if got := ask[page[jobs.Account]](s, 200, "GET", "/accounts", nil); got.Items == nil || len(got.Items) != 0 {
		t.Errorf("accounts of a new store = %+v, want an empty list", got)
	}
	a := s.send("POST", "/accounts", map[string]string{"email": "Ann+a/b@example.com", "project": "main"}, nil)
	if a.status != 201 || a.header.Get("Location") != "/api/v1/accounts/ann+a%2Fb@example.com" {
		t.Errorf("add = %+v", a)
	}
	if got := ask[jobs.Account](s, 200, "GET", "/accounts/ann+a%2Fb@example.com", nil); got.Email != "ann+a/b@example.com" || got.Project != "main" {
		t.Errorf("account = %+v", got)
	}
	s.fails(409, "exists already; start its backfill with", "POST", "/accounts", map[string]string{"email": "ann+a/b@example.com", "project": "main"})
	s.fails(422, "unknown project mian, the settings name main; add google.projects.mian", "POST", "/accounts", map[string]string{"email": ann, "project": "mian"})
	s.fails(422, "is not an e-mail address", "POST", "/accounts", map[string]string{"email": "ann", "project": "main"})
	s.fails(422, "body: expected required property project to be present", "POST", "/accounts", map[string]string{"email": ann})
	s.fails(422, "unexpected property", "POST", "/accounts", map[string]string{"email": ann, "project": "main", "colour": "blue"})
	s.fails(404, "unknown account bob@example.com; add it with", "GET", "/accounts/bob@example.com", nil)
	for i := range 4 {
		ask[jobs.Account](s, 201, "POST", "/accounts", map[string]string{"email": fmt.Sprintf("u%d@example.com", i), "project": "main"})
	}
	var got []string
	for next := ""; ; {
		p := ask[page[jobs.Account]](s, 200, "GET", "/accounts?limit=2&cursor="+url.QueryEscape(next), nil)
		for _, a := range p.Items {
			got = append(got, a.Email)
		}
		if next = p.Next; next == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"ann+a/b@example.com", "u0@example.com", "u1@example.com", "u2@example.com", "u3@example.com"}, got); diff != "" {
		t.Errorf("accounts in pages (-want +got):\n%s", diff)
	}
}

// TestAPIAssignsAccounts: what a body does not name stays, and nothing is written
// when something in it cannot be.
func TestAPIAssignsAccounts(t *testing.T) {
	s := serve(t, func(cfg *config.Config) {
		cfg.Fairness.Classes = map[string]config.Class{"urgent": {Weight: 4}}
	})
	type body map[string]any
	account := func(tenant, class string) jobs.Account {
		return jobs.Account{Email: ann, Tenant: tenant, Class: class, Project: "main"}
	}
	s.fails(422, "unknown priority class fast; there are default, urgent; add fairness.classes.fast", "POST", "/accounts", body{"email": ann, "project": "main", "class": "fast"})
	s.fails(404, "unknown account ann@example.com; add it with", "PATCH", "/accounts/"+ann, body{"tenant": "acme"})
	ask[jobs.Account](s, 201, "POST", "/accounts", body{"email": ann, "project": "main", "tenant": "acme"})
	for _, step := range []struct {
		body body
		want jobs.Account
	}{
		{body{"class": "urgent"}, account("acme", "urgent")},
		{body{"tenant": "umbrella"}, account("umbrella", "urgent")},
		{body{"tenant": "acme", "class": "default"}, account("acme", "default")},
		{body{"tenant": "", "class": ""}, account("example.com", "")},
		{body{"tenant": "acme", "class": "urgent"}, account("acme", "urgent")},
	} {
		got := ask[jobs.Account](s, 200, "PATCH", "/accounts/Ann@example.com", step.body)
		stored := ask[jobs.Account](s, 200, "GET", "/accounts/"+ann, nil)
		got.CreatedAt, stored.CreatedAt = time.Time{}, time.Time{}
		if !cmp.Equal(got, step.want) || !cmp.Equal(stored, step.want) {
			t.Errorf("after %v the account is %+v, stored %+v, want %+v", step.body, got, stored, step.want)
		}
	}
	s.fails(422, "unknown priority class fast", "PATCH", "/accounts/"+ann, body{"tenant": "umbrella", "class": "fast"})
	s.fails(422, "cannot be a tenant", "PATCH", "/accounts/"+ann, body{"tenant": "a b", "class": "default"})
	s.fails(422, "the body changes nothing; name tenant or class", "PATCH", "/accounts/"+ann, body{})
	s.fails(422, "unexpected property", "PATCH", "/accounts/"+ann, body{"project": "other"})
	if got := ask[jobs.Account](s, 200, "GET", "/accounts/"+ann, nil); got.Tenant != "acme" || got.Class != "urgent" {
		t.Errorf("after what was refused the account is %+v, want it as it was", got)
	}
}

func TestAPIBackfills(t *testing.T) {
	s := serve(t, nil)
	s.fails(404, "unknown account ann@example.com; add it with: headroom account add ann@example.com --project main", "POST", "/backfills", map[string]string{"account": ann})
	ask[jobs.Account](s, 201, "POST", "/accounts", map[string]string{"email": ann, "project": "main"})

	whole := map[string]any{"account": ann}
	part := map[string]any{"account": ann, "filter": map[string]any{"labels": []string{"INBOX"}, "after": "2025-01-01T00:00:00Z"}}
	first := ask[steered](s, 201, "POST", "/backfills", whole)
	again := ask[steered](s, 200, "POST", "/backfills", whole)
	if !first.Created || again.Created || first.Job.ID != jobs.BackfillID(ann) || again.Job.Epoch != first.Job.Epoch {
		t.Errorf("started %+v and %+v, want one job", first, again)
	}
	other := ask[steered](s, 201, "POST", "/backfills", part).Job
	if other.ID == first.Job.ID || len(other.Filter.Labels) != 1 {
		t.Errorf("with a filter = %+v", other)
	}
	s.fails(422, "is not before", "POST", "/backfills", map[string]any{"account": ann, "filter": map[string]any{"after": "2025-01-02T00:00:00Z", "before": "2025-01-01T00:00:00Z"}})

	id := "/backfills/" + url.PathEscape(other.ID)
	for i, want := range []bool{true, false} {
		if got := ask[steered](s, 200, "POST", id+"/pause", nil); got.Changed != want || got.Job.State != jobs.Paused {
			t.Errorf("pause %d = %+v", i, got)
		}
	}
	if got := ask[page[jobs.Job]](s, 200, "GET", "/backfills?state=paused&account="+ann, nil); len(got.Items) != 1 || got.Items[0].ID != other.ID {
		t.Errorf("paused = %+v", got)
	}
	one := ask[page[jobs.Job]](s, 200, "GET", "/backfills?limit=1", nil)
	two := ask[page[jobs.Job]](s, 200, "GET", "/backfills?limit=1&cursor="+url.QueryEscape(one.Next), nil)
	if len(one.Items) != 1 || len(two.Items) != 1 || one.Items[0].ID != first.Job.ID || two.Items[0].ID != other.ID || two.Next != "" {
		t.Errorf("pages = %+v, %+v", one, two)
	}
	if got := ask[steered](s, 200, "POST", id+"/resume", nil); !got.Changed || got.Job.State != jobs.Queued {
		t.Errorf("resume = %+v", got)
	}
	if got := ask[steered](s, 200, "POST", id+"/cancel", nil); !got.Changed || got.Job.State != jobs.Cancelled {
		t.Errorf("cancel = %+v", got)
	}
	if got := ask[jobs.Job](s, 200, "GET", id, nil); got.State != jobs.Cancelled {
		t.Errorf("get = %+v", got)
	}
	s.fails(409, "which is cancelled; start it again", "POST", id+"/pause", nil)
	s.fails(404, "no backfill backfill:bob@example.com", "POST", "/backfills/backfill:bob@example.com/pause", nil)
	s.fails(404, `an id begins with "backfill:"`, "POST", "/backfills/"+ann+"/cancel", nil)
	s.fails(422, "query.state: expected value to be one of", "GET", "/backfills?state=tired", nil)
	s.fails(422, "query.limit: expected number <= 1000", "GET", "/backfills?limit=1001", nil)
	s.fails(422, "query.states: unknown query parameter", "GET", "/backfills?states=paused", nil)
	s.fails(409, "live sync of ann@example.com goes on from where a backfill", "POST", "/syncs", map[string]string{"account": ann})

	s.redis.Stop()
	s.fails(503, "connection refused; start one (redis-server)", "POST", id+"/resume", nil)
	s.fails(503, "no Redis at redis://", "POST", "/backfills", map[string]any{"account": ann, "filter": map[string]any{"query": "x"}})
	if got := ask[page[jobs.Job]](s, 200, "GET", "/backfills", nil); len(got.Items) != 2 {
		t.Errorf("without Redis a job was left behind: %+v", got)
	}
}

// keep stores messages as a backfill does, one of which failed.
func (s *served) keep(raw ...string) jobs.Job {
	s.t.Helper()
	ctx := s.t.Context()
	must := func(err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
	}
	must(s.store.AddAccount(ctx, jobs.Account{Email: ann, Project: "main"}))
	job, _, err := s.store.StartBackfill(ctx, ann, jobs.Filter{})
	must(err)
	job, err = s.store.Claim(ctx, job.Ref(), time.Hour)
	must(err)
	listed := jobs.Page{IDs: []string{"bad"}}
	results := []jobs.Result{{ID: "bad", Outcome: jobs.ItemFailed, Failure: &jobs.Failure{ID: "bad", Phase: "fetch", Class: jobs.ClassItem, Reason: "badRequest", Attempts: 1}}}
	for i, text := range raw {
		w := s.blobs.Create(ctx)
		_, err := io.WriteString(w, text)
		must(err)
		sha, err := w.Commit()
		must(err)
		id := fmt.Sprint("m", i)
		listed.IDs = append(listed.IDs, id)
		results = append(results, jobs.Result{ID: id, Outcome: jobs.ItemStored, Message: &jobs.Message{
			Account: ann, ID: id, InternalDate: time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC), Labels: []string{"INBOX"}[:i%2],
			Size: int64(len(text)), SHA256: sha, ParseStatus: jobs.Parsed,
		}})
	}
	_, err = s.store.AddListed(ctx, job.Ref(), listed)
	must(err)
	_, err = s.store.Commit(ctx, job.Ref(), results)
	must(err)
	job, err = s.store.Finish(ctx, job.Ref(), jobs.Finish{State: jobs.CompletedWithFailures})
	must(err)
	return job
}

func TestAPIFailuresAndRetry(t *testing.T) {
	s := serve(t, nil)
	id := "/backfills/" + s.keep("Subject: 0\r\n").ID
	for query, want := range map[string]int{"": 1, "?class=item&given_up=true": 1, "?class=transient": 0, "?reason=badRequest": 1} {
		if got := ask[page[jobs.Failure]](s, 200, "GET", id+"/failures"+query, nil); len(got.Items) != want {
			t.Errorf("failures%s = %+v, want %d", query, got, want)
		}
	}
	s.fails(404, "no backfill", "GET", "/backfills/backfill:bob@example.com/failures", nil)
	if got := ask[steered](s, 200, "POST", id+"/retry-failed", jobs.FailureFilter{Class: jobs.ClassTransient}); got.Retried != 0 || got.Job.State != jobs.CompletedWithFailures {
		t.Errorf("retry of none = %+v", got)
	}
	if got := ask[steered](s, 200, "POST", id+"/retry-failed", nil); got.Retried != 1 || got.Job.State != jobs.Queued {
		t.Errorf("retry without a filter = %+v, want all", got)
	}
	s.fails(422, "1001 ids are too many", "POST", id+"/retry-failed", jobs.FailureFilter{IDs: strings.Split(strings.Repeat("x", 1001), "")})
}

// TestAPICursorsAndMethods: what a list has not made as a cursor is refused, and a
// method that is not possible is told before anything about the body.
func TestAPICursorsAndMethods(t *testing.T) {
	s := serve(t, nil)
	s.keep("Subject: 0\r\n", "Subject: 1\r\n", "Subject: 2\r\n")
	as := func(kind string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Content-Type", kind) }
	}
	const messages = "/accounts/ann@example.com/messages"
	two := ask[page[jobs.Message]](s, 200, "GET", messages+"?limit=2", nil)
	if got := ask[page[jobs.Message]](s, 200, "GET", messages+"?cursor="+two.Next, nil); len(got.Items) != 1 || got.Items[0].ID != "m2" || got.Next != "" {
		t.Errorf("the second page = %+v, want m2", got)
	}
	backfill := "/backfills/" + jobs.BackfillID("ann@example.com")
	for _, list := range []string{messages, "/accounts", "/backfills", backfill + "/failures", "/schedules", "/watches", "/accounts/ann@example.com/calendars"} {
		for _, cursor := range []string{"bad", "m1", "ann@example.com", "1", "-1", "%00", two.Next[:len(two.Next)-1], two.Next + "A", url.QueryEscape("ü")} {
			s.fails(400, "query.cursor: it is not the next of an earlier answer of this list", "GET", list+"?cursor="+cursor, nil)
		}
		if list != messages { // a cursor of another list
			s.fails(400, "query.cursor", "GET", list+"?cursor="+two.Next, nil)
		}
	}
	for _, row := range []struct{ method, path, allow string }{
		{"POST", messages, "GET, HEAD"}, {"DELETE", messages, "GET, HEAD"}, {"PUT", "/accounts", "GET, HEAD, POST"},
		{"POST", backfill, "GET, HEAD"}, {"GET", backfill + "/pause", "POST"}, {"POST", "/openapi.json", "GET, HEAD"}, {"PATCH", "/schedules", "GET, HEAD"},
	} {
		a := s.send(row.method, row.path, "x", as("application/x-www-form-urlencoded"))
		if a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != row.allow {
			t.Errorf("%s %s = %d, Allow %q, want 405 and %q", row.method, row.path, a.status, a.header.Get("Allow"), row.allow)
		}
	}
	if a := s.send("POST", "/nothing", "x", as("text/plain")); a.status != http.StatusNotFound {
		t.Errorf("POST /nothing = %d, want 404", a.status)
	}
	if a := s.send("POST", backfill+"/pause", "x", as("text/plain")); a.status != http.StatusUnsupportedMediaType {
		t.Errorf("a pause that is no JSON = %d, want 415", a.status)
	}
}

func TestAPIMessages(t *testing.T) {
	s := serve(t, nil)
	raw := "Subject: \xff\x00\r\n\r\n" + strings.Repeat("body\r\n", 20_000)
	s.keep("Subject: 0\r\n", raw, "Subject: 2\r\n")
	for query, want := range map[string]string{
		"": "m0 m1 m2", "?label=INBOX": "m1", "?after=2026-01-02T00:00:00Z&before=2026-01-03T00:00:00Z": "m1",
		"?after=2026-01-02&before=2026-01-03": "m1", "?limit=2": "m0 m1",
	} {
		var got []string
		for _, m := range ask[page[jobs.Message]](s, 200, "GET", "/accounts/Ann@example.com/messages"+query, nil).Items {
			got = append(got, m.ID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("messages%s = %q, want %q", query, got, want)
		}
	}
	if m := ask[jobs.Message](s, 200, "GET", "/accounts/ann@example.com/messages/m1", nil); m.Size != int64(len(raw)) {
		t.Errorf("message = %+v", m)
	}
	a := s.send("GET", "/accounts/ann@example.com/messages/m1/raw", nil, nil)
	if a.status != 200 || a.body != raw || a.header.Get("Content-Type") != "message/rfc822" || a.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("raw = %d, %d bytes, %v, want the bytes that were stored", a.status, len(a.body), a.header)
	}
	if head := s.send("HEAD", "/accounts/ann@example.com/messages/m1/raw", nil, nil); head.status != 200 || head.header.Get("Content-Length") != fmt.Sprint(len(raw)) {
		t.Errorf("HEAD of raw = %+v", head)
	}
	s.fails(404, `no message "m9" of ann@example.com is stored`, "GET", "/accounts/ann@example.com/messages/m9/raw", nil)
	s.fails(404, "unknown account bob@example.com", "GET", "/accounts/bob@example.com/messages", nil)
	s.fails(422, "query.after: invalid value: expected a moment such as", "GET", "/accounts/ann@example.com/messages?after=May", nil)
	s.fails(422, "is not before", "GET", "/accounts/ann@example.com/messages?after=2026-01-02T00:00:00Z&before=2026-01-01T00:00:00Z", nil)
}

func TestAPIQuota(t *testing.T) {
	s := serve(t, nil)
	ask[jobs.Account](s, 201, "POST", "/accounts", map[string]string{"email": ann, "project": "main"})
	if got := ask[quotaview.QuotaState](s, 200, "GET", "/quota/"+ann, nil); got.Project != "main" || len(got.APIs) == 0 || len(got.APIs[0].Windows) == 0 {
		t.Errorf("quota = %+v", got)
	}
	if got := ask[quotaview.QuotaStory](s, 200, "GET", "/quota/"+ann+"/explain?last=3", nil); got.Account != ann || got.Notes == nil {
		t.Errorf("story = %+v", got)
	}
	type set struct {
		APIs []struct {
			Revision uint32
			Changed  bool
		}
		Unpublished string
	}
	wanted := map[string]any{"api": "gmail", "set": map[string]any{"backfill.ceiling": 0.5}}
	for i, want := range []bool{true, false} {
		got := ask[set](s, 200, "PUT", "/quota/"+ann+"/settings", wanted)
		if len(got.APIs) != 1 || got.APIs[0].Changed != want || got.APIs[0].Revision != 1 || got.Unpublished != "" {
			t.Errorf("set %d = %+v", i, got)
		}
	}
	state := ask[quotaview.QuotaState](s, 200, "GET", "/quota/"+ann, nil)
	for _, l := range state.APIs[0].Windows[0].Lanes {
		if l.Lane == "backfill" && l.Ceiling != state.APIs[0].Windows[0].Units/2 {
			t.Errorf("backfill's ceiling = %d of %d, want half", l.Ceiling, state.APIs[0].Windows[0].Units)
		}
	}
	history := ask[struct{ Changes []sqlite.Setting }](s, 200, "GET", "/quota/main/settings", nil)
	if len(history.Changes) != 1 || !strings.Contains(history.Changes[0].Who, "HTTP interface") || !strings.Contains(history.Changes[0].Change, "backfill.ceiling=0.5") {
		t.Errorf("history = %+v", history)
	}
	ask[set](s, 200, "PUT", "/quota/"+ann+"/settings", map[string]any{"api": "gmail", "unset": []string{"backfill.ceiling"}})
	s.fails(422, `unknown key "ceiling"`, "PUT", "/quota/main/settings", map[string]any{"set": map[string]any{"ceiling": 1}})
	s.fails(422, "a mode is for a whole project", "PUT", "/quota/"+ann+"/settings", map[string]any{"set": map[string]any{"mode": "adaptive"}})
	s.fails(422, "nothing to set", "PUT", "/quota/main/settings", map[string]any{})
	s.fails(404, "unknown account bob@example.com", "GET", "/quota/bob@example.com", nil)
	s.fails(404, "unknown project mian", "GET", "/quota/mian", nil)
	s.fails(422, "main is no account", "GET", "/quota/main/explain", nil)
	s.redis.Stop()
	s.fails(503, "no Redis at", "GET", "/quota/main", nil)
}

func TestAPIRefusesWhatBrowsersMaySend(t *testing.T) {
	s := serve(t, func(cfg *config.Config) { cfg.Web.Hosts = []string{"headroom.example.com"} })
	body := map[string]string{"email": ann, "project": "main"}
	for name, row := range map[string]struct {
		change func(*http.Request)
		status int
		text   string
	}{
		"a form":                    {func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415, "Content-Type: application/json"},
		"no type":                   {func(r *http.Request) { r.Header.Del("Content-Type") }, 415, "Content-Type: application/json"},
		"another origin":            {func(r *http.Request) { r.Header.Set("Origin", "https://evil.example.net") }, 403, "another origin"},
		"another site":              {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403, "another origin"},
		"a stranger's name":         {func(r *http.Request) { r.Host = "evil.example.net:8080" }, 403, `the name "evil.example.net"`},
		"a stranger's, same origin": {func(r *http.Request) { r.Host = "evil.example.net"; r.Header.Set("Origin", "http://evil.example.net") }, 403, "web.hosts (HEADROOM_WEB_HOSTS)"},
		"too large a body": {func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat(" ", 1<<20))), -1
		}, 413, "the body is larger than 65536 bytes"},
		"no JSON":                     {func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("{")), -1 }, 400, ""},
		"own origin":                  {func(r *http.Request) { r.Header.Set("Origin", "http://"+r.URL.Host) }, 201, ""},
		"a name of the settings":      {func(r *http.Request) { r.Host = "Headroom.example.com" }, 409, "exists already"},
		"localhost":                   {func(r *http.Request) { r.Host = "localhost:1" }, 409, "exists already"},
		"an address in brackets":      {func(r *http.Request) { r.Host = "[::1]:8080" }, 409, "exists already"},
		"JSON with a character set":   {func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=utf-8") }, 409, "exists already"},
		"a browser's own navigation":  {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") }, 409, "exists already"},
		"no such path, other's names": {func(r *http.Request) { r.URL.Path += "/x/y"; r.Host = "evil.example.net" }, 403, "web.hosts"},
	} {
		if row.status == 409 {
			s.send("POST", "/accounts", body, nil) // whatever the order
		}
		if row.status == 201 {
			continue
		}
		t.Run(name, func(t *testing.T) { s.send("POST", "/accounts", body, row.change).problem(t, row.status, row.text) })
	}
	if a := s.send("GET", "/accounts", nil, func(r *http.Request) { r.Host = "evil.example.net" }); a.status != 403 {
		t.Errorf("reading under a stranger's name = %+v, want 403", a)
	}
	if a := s.send("POST", "/accounts", map[string]string{"email": "own@example.com", "project": "main"},
		func(r *http.Request) { r.Header.Set("Origin", "http://"+r.URL.Host) }); a.status != 201 {
		t.Errorf("from a page of its own = %+v, want 201", a)
	}
	s.send("POST", "/accounts", nil, func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat(" ", 1<<20))), -1
	}).problem(t, 413, "")
	if a := s.send("GET", "/accounts", nil, nil); a.status != 200 {
		t.Errorf("after a body that was not read = %+v, want 200", a)
	}
	s.fails(404, "there is nothing at /api/v1/nothing; see /api/v1/openapi.json", "GET", "/nothing", nil)
	a := s.send("DELETE", "/accounts", nil, nil)
	a.problem(t, 405, "DELETE is not possible here")
	if !strings.Contains(a.header.Get("Allow"), "POST") {
		t.Errorf("Allow = %q", a.header.Get("Allow"))
	}
}
