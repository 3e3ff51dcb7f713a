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

// guard protects everything except Google's pushes, which are verified, and the health
// probes. There is no log-in, so a page on the internet could use the browser of
// anybody who reaches the server. Therefore the host of a request must be a name that
// no stranger can register (DNS rebinding), and requests from pages of another origin
// are refused, whether they read or write.
type guard struct {
	names  []string
	next   http.Handler
	refuse func(w http.ResponseWriter, status int, detail string) // refuses a request below /api/; nil: as elsewhere
}

// newGuard returns a guard that accepts the given host names, besides localhost, IP
// addresses, and the names of the machine and of the address it listens on.
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

// hostOf returns the host of a request, without the port.
func hostOf(r *http.Request) string {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// named reports whether the guard accepts a host name. A name without a dot is that of
// a machine or service nearby, which Prometheus may use: nobody on the internet can
// have it.
func (g *guard) named(host string) bool {
	return host != "" && !strings.Contains(host, ".") && !strings.Contains(host, ":") || strings.HasSuffix(host, ".localhost") ||
		net.ParseIP(host) != nil || slices.ContainsFunc(g.names, func(name string) bool { return host != "" && strings.EqualFold(name, host) })
}

// foreign reports whether a browser sends the request for a page of another origin.
// Following a link from such a page is allowed.
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
