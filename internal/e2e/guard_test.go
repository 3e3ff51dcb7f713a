package e2e_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"headroom/internal/app"
)

// TestOneGuardStandsBeforeAllPages: what a page on the internet can have somebody's
// browser send is refused on every path but those of health and of Google's pushes;
// programs, Prometheus and people with a link are not.
func TestOneGuardStandsBeforeAllPages(t *testing.T) {
	t.Parallel()
	r := newSite(t, 1)
	r.cfg.Web.Hosts = []string{"headroom.example.com"}
	r.cfg.Metrics.Listen = "127.0.0.1:0"
	r.cfg.Push.Calendar.Address = "http://headroom.example.com/push/calendar"
	pages, metrics := r.run(app.RoleWeb), r.run(app.RoleScheduler)
	guarded := map[string]*app.App{"/": pages, "/queues/": pages, "/queues/api/queues": pages, "/metrics": pages, "/nothing": pages,
		"/api/v1/accounts": pages, "/api/v1/openapi.json": pages, "//api/v1/accounts": pages, "/queues/../metrics": pages}
	free := map[string]*app.App{"/healthz": pages, "/readyz": pages, "/push/calendar": pages}
	for name, row := range map[string]struct {
		change  func(*http.Request)
		refused bool
		page    string // only this one
	}{
		"a program":             {change: func(*http.Request) {}},
		"localhost":             {change: func(r *http.Request) { r.Host = "localhost:8080" }},
		"a service's name":      {change: func(r *http.Request) { r.Host = "headroom-web:8080" }},
		"a name of settings":    {change: func(r *http.Request) { r.Host = "Headroom.Example.com" }},
		"its own page":          {change: func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") }},
		"typed in":              {change: func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }},
		"a stranger's name":     {change: func(r *http.Request) { r.Host = "evil.example.net" }, refused: true},
		"with a port":           {change: func(r *http.Request) { r.Host = "evil.example.net:8080" }, refused: true},
		"an address in a name":  {change: func(r *http.Request) { r.Host = "127.0.0.1.evil.example.net" }, refused: true},
		"another site":          {change: func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, refused: true},
		"a neighbouring site":   {change: func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, refused: true},
		"another origin":        {change: func(r *http.Request) { r.Header.Set("Origin", "https://evil.example.net") }, refused: true},
		"no origin to speak of": {change: func(r *http.Request) { r.Header.Set("Origin", "null") }, refused: true},
		"a frame": {change: func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "navigate")
			r.Header.Set("Sec-Fetch-Dest", "iframe")
		}, refused: true},
		"a link": {change: func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "navigate")
			r.Header.Set("Sec-Fetch-Dest", "document")
		}, page: "/"},
	} {
		ask := func(a *app.App, path string) (int, string) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.Addr().String(), nil)
			if err != nil {
				t.Fatal(err)
			}
			req.URL.Path = path
			row.change(req)
			resp, err := http.DefaultTransport.RoundTrip(req) // follows nothing
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if kind := resp.Header.Get("Content-Type"); resp.StatusCode == http.StatusForbidden && strings.HasPrefix(path, "/api/") != strings.Contains(kind, "problem+json") {
				t.Errorf("%s, %s: refused as %s", name, path, kind)
			}
			return resp.StatusCode, string(body)
		}
		for path, a := range guarded {
			if row.page != "" && row.page != path {
				continue
			}
			if code, body := ask(a, path); (code == http.StatusForbidden) != row.refused {
				t.Errorf("%s, %s = %d %.200q, want refused %t", name, path, code, body, row.refused)
			}
		}
		if code, body := ask(metrics, "/metrics"); row.page == "" && (code == http.StatusForbidden) != row.refused {
			t.Errorf("%s, metrics alone = %d %.200q, want refused %t", name, code, body, row.refused)
		}
		for path, a := range free {
			if code, body := ask(a, path); code == http.StatusForbidden {
				t.Errorf("%s, %s = %d %q, want it answered", name, path, code, body)
			}
		}
	}
}
