package web

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
)

// guard stands before everything but what Google pushes, which proves where it comes
// from, and the probes of health. Since there is no log-in, a browser on a machine
// that reaches the server is all that a page on the internet needs. So the server must
// be asked for by a name that no stranger can make up (or else his page could make its
// own name point here), and what the page of another origin asks for is refused, be it
// a read or a write.
type guard struct {
	names  []string
	next   http.Handler
	refuse func(w http.ResponseWriter, status int, detail string) // below /api/; nil: as elsewhere
}

// newGuard returns a guard of a server that may be asked for by some names, besides
// localhost, IP addresses, and those of the machine and of the address it listens on.
func newGuard(o Options, next http.Handler) *guard {
	g := &guard{names: slices.Clone(o.Hosts), next: next, refuse: o.RefuseAPI}
	if host, _, err := net.SplitHostPort(o.Listen); err == nil {
		g.names = append(g.names, host)
	}
	if host, err := os.Hostname(); err == nil {
		g.names = append(g.names, host)
	}
	return g
}

// ServeHTTP implements [http.Handler].
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" || strings.HasPrefix(r.URL.Path, "/push/") {
		g.next.ServeHTTP(w, r)
		return
	}
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	switch host := hostOf(r); {
	case !g.named(host):
		g.answer(w, r, fmt.Sprintf("this server does not go by the name %q; ask for localhost or its IP address, or add the name to web.hosts (HEADROOM_WEB_HOSTS)", host))
	case foreign(r):
		g.answer(w, r, "the request comes from a page of another origin; send it from a program, or from a page of this server")
	default:
		g.next.ServeHTTP(w, r)
	}
}

// answer refuses a request.
func (g *guard) answer(w http.ResponseWriter, r *http.Request, detail string) {
	if g.refuse != nil && isAPI(r) {
		g.refuse(w, http.StatusForbidden, detail)
		return
	}
	http.Error(w, detail, http.StatusForbidden)
}

func isAPI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }

// hostOf is the name that a request asks for, without the port.
func hostOf(r *http.Request) string {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// named reports whether the server goes by a name. One without a dot is that of a
// machine or service nearby, by which Prometheus may ask: nobody on the internet has
// such a name.
func (g *guard) named(host string) bool {
	return host != "" && !strings.Contains(host, ".") && !strings.Contains(host, ":") || strings.HasSuffix(host, ".localhost") ||
		net.ParseIP(host) != nil || slices.ContainsFunc(g.names, func(name string) bool { return host != "" && strings.EqualFold(name, host) })
}

// foreign reports whether a browser says that a page of another origin sends the
// request. Whoever follows a link from there to one of the pages sees it himself.
func foreign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return false
	case "":
		origin := r.Header.Get("Origin")
		u, err := url.Parse(origin)
		return origin != "" && (err != nil || !strings.EqualFold(u.Host, r.Host))
	}
	link := r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return !link || isAPI(r)
}
