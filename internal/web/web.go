// Package web is the HTTP server of a process: an index page, metrics for Prometheus,
// the queues in Asynqmon, and health; or, for a process without pages, metrics and
// health alone. Its own pages only read. It mounts the HTTP interface, which can write.
//
// It has no log-in. Only the paths below /push/ are meant for the internet, because
// Google's pushes are verified. By default it listens on loopback only; to open it to
// others, put a proxy with a log-in in front.
package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/hibiken/asynqmon"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"headroom/jobs"
)

// queuesPath is the path of Asynqmon.
const queuesPath = "/queues"

// shutdownTimeout is how long requests may take to end when the server stops.
const shutdownTimeout = 3 * time.Second

// Options configures a [Server]. All fields but Version, API and Push are required; a server
// from [NewMetrics] needs only Listen, Checks, Gatherer and Log.
type Options struct {
	Listen  string // host:port that it is served on; see [Listen]
	Version string
	Redis   redis.UniversalClient // of the queues; closed by its owner
	Lanes   []Lane
	// JobsFunc returns at most limit jobs, the newest first, and the number of all.
	JobsFunc   func(ctx context.Context, limit int) (newest []jobs.Job, total int, err error)
	Checks     []Check // of readiness
	Gatherer   prometheus.Gatherer
	Registerer prometheus.Registerer
	API        http.Handler                                           // of the paths below /api/; none if nil
	Push       http.Handler                                           // of the paths below /push/, which Google asks for; none if nil
	Hosts      []string                                               // names by which it may be asked for, besides localhost and IP addresses
	RefuseAPI  func(w http.ResponseWriter, status int, detail string) // how API refuses; in plain text if nil
	Log        *zap.Logger
}

// Lane is a lane and its queue.
type Lane struct {
	Name  string
	Queue string
}

// Check tests one thing that the process needs.
type Check struct {
	Name string
	Func func(context.Context) error
}

// A Server serves one process' pages. Make it with [New].
type Server struct {
	opts    Options
	handler http.Handler
}

// New returns a server that does not listen yet.
func New(o Options) (*Server, error) {
	o.Log = o.Log.Named("web")
	s := &Server{opts: o}
	names := make([]string, len(o.Lanes))
	for i, l := range o.Lanes {
		names[i] = l.Queue
	}
	if err := o.Registerer.Register(newQueueCollector(o.Redis, names, o.Log)); err != nil {
		return nil, fmt.Errorf("register the metrics of the queues: %w", err)
	}
	mux := s.metrics()
	mux.HandleFunc("GET /{$}", s.index)
	mux.Handle(queuesPath+"/", ownAssetsOnly(asynqmon.New(asynqmon.Options{
		RootPath: queuesPath, RedisConnOpt: sharedClient{o.Redis}, ReadOnly: true,
	})))
	if o.API != nil {
		mux.Handle("/api/", o.API)
	}
	if o.Push != nil {
		mux.Handle("/push/", o.Push)
	}
	s.handler = newGuard(o, mux)
	return s, nil
}

// NewMetrics returns a server of metrics and health alone, which does not listen
// yet.
func NewMetrics(o Options) *Server {
	o.Log = o.Log.Named("metrics")
	s := &Server{opts: o}
	s.handler = newGuard(o, s.metrics())
	return s
}

// metrics serves what every process serves.
func (s *Server) metrics() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.opts.Gatherer, promhttp.HandlerOpts{
		ErrorLog: zap.NewStdLog(s.opts.Log), ErrorHandling: promhttp.ContinueOnError,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", s.ready)
	return mux
}

// Handler returns the pages, for the caller's own server.
func (s *Server) Handler() http.Handler { return s.handler }

// Listen binds the address that a setting names. It is separate from [Server.Serve] so
// that a port in use is reported before any other part of the process starts.
func Listen(ctx context.Context, address, setting string) (net.Listener, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		cause := err
		if errno, ok := errors.AsType[syscall.Errno](err); ok {
			cause = errno
		}
		return nil, fmt.Errorf("cannot listen on %s: %w; stop what uses the port, or set %s (HEADROOM_%s)",
			address, cause, setting, strings.ToUpper(strings.ReplaceAll(setting, ".", "_")))
	}
	return ln, nil
}

// Serve answers on ln until ctx ends, and returns nil then. It closes ln, and
// returns only when no request runs any more.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		ErrorLog:          zap.NewStdLog(s.opts.Log),
	}
	s.opts.Log.Info("listening", zap.String("url", "http://"+ln.Addr().String()+"/"))
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := srv.Shutdown(bound); err != nil {
		srv.Close()
	}
	<-served
	return nil
}

// sharedClient gives Asynqmon a client that it must not close.
type sharedClient struct{ c redis.UniversalClient }

// MakeRedisClient implements [asynq.RedisConnOpt].
func (s sharedClient) MakeRedisClient() any { return s.c }

// ownAssetsOnly keeps a browser from fetching anything from other hosts, such
// as the fonts that Asynqmon's page asks for.
func ownAssetsOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self' 'unsafe-inline' data:")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		h.ServeHTTP(w, r)
	})
}
