// Package push takes what Google tells of changes: messages of a Pub/Sub push
// subscription for Gmail, and notices on channels for Calendar. It decides whether
// a push is what it claims to be and came before; what it leads to is the store's.
//
// A push carries no data, so the worst that a forged one could do is to have a
// sync begin. It is refused all the same. What Google should not send again is
// answered with success, also where nothing comes of it: a push for an account
// that is not known here would else come for days.
package push

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"headroom/jobs"
)

// Where pushes come in.
const (
	GmailPath    = "/push/gmail"
	CalendarPath = "/push/calendar"
)

// maxBody bounds what a push may hold. One of Gmail's has half a kilobyte, and one
// of Calendar's nothing.
const maxBody = 64 << 10

// timeout bounds how long a push is worked at; Pub/Sub waits 10 s by default.
const timeout = 8 * time.Second

// A Store turns pushes into syncs.
type Store interface {
	// PushMail asks for a sync of a mailbox that has changed.
	PushMail(ctx context.Context, email string, historyID uint64) (jobs.PushOutcome, error)
	// Channel returns a channel, or jobs.ErrNotFound.
	Channel(ctx context.Context, id string) (jobs.Channel, error)
	// AddStray notes a channel that is of an account, as it seems, so that it is
	// stopped.
	AddStray(ctx context.Context, c jobs.Channel) error
	// PushChannel asks for a sync of what a channel tells of, if the message's
	// number is higher than those before it. Of the first message, which only says
	// that the channel is there, changed is false.
	PushChannel(ctx context.Context, id, resource string, number uint64, changed bool) (jobs.PushOutcome, error)
}

// Gmail says which pushes for mailboxes are genuine.
type Gmail struct {
	Subscription   string // of the topic
	Issuer         string // of the tokens
	Audience       string
	ServiceAccount string // whom they are about
}

// Options configures [New]. Store, Redis, Log and Registerer are required.
type Options struct {
	Store      Store
	Redis      redis.UniversalClient // remembers what came before; not closed
	KeyPrefix  string
	Gmail      Gmail             // none is taken if zero
	Calendar   bool              // whether pushes of Calendar are taken
	Base       http.RoundTripper // asks for the issuer's keys; [http.DefaultTransport] if nil
	Log        *zap.Logger
	Registerer prometheus.Registerer
}

// A Handler takes pushes. Make it with [New].
type Handler struct {
	opts     Options
	mux      *http.ServeMux
	verifier *verifier
	requests *prometheus.CounterVec
	warned   atomic.Int64 // when a refusal was last logged, in ns since 1970
}

// New returns a handler of the paths that the options ask for.
func New(o Options) (*Handler, error) {
	if o.Store == nil || o.Redis == nil || o.Log == nil || o.Registerer == nil {
		return nil, errors.New("push: Store, Redis, Log and Registerer are required")
	}
	o.Log = o.Log.Named("push")
	h := &Handler{opts: o, mux: http.NewServeMux(), requests: promauto.With(o.Registerer).NewCounterVec(prometheus.CounterOpts{
		Name: "headroom_push_requests_total",
		Help: "Pushes that came in, by source and by what became of them.",
	}, []string{"source", "outcome"})}
	if o.Gmail != (Gmail{}) {
		var err error
		if h.verifier, err = newVerifier(o.Gmail, o.Base); err != nil {
			return nil, err
		}
		h.mux.Handle("POST "+GmailPath, h.taking("gmail", h.takeGmail))
	}
	if o.Calendar {
		h.mux.Handle("POST "+CalendarPath, h.taking("calendar", h.takeCalendar))
	}
	return h, nil
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// A refusal is why a push is not taken.
type refusal struct {
	status  int
	outcome string // for the metric
	err     error
}

func (e *refusal) Error() string { return e.err.Error() }
func (e *refusal) Unwrap() error { return e.err }

// What becomes of pushes that are not taken, for the metric.
const (
	outcomeForged    = "forged"
	outcomeMalformed = "malformed"
	outcomeOversized = "oversized"
	outcomeFailed    = "failed" // ours to mend: Google sends it again
)

func forged(status int, err error) error { return &refusal{status, outcomeForged, err} }
func malformed(err error) error          { return &refusal{http.StatusBadRequest, outcomeMalformed, err} }

var errOversized = &refusal{http.StatusRequestEntityTooLarge, outcomeOversized, errors.New("the body is larger than any of Google's")}

// taking answers a push by what take makes of it, and counts it.
func (h *Handler) taking(source string, take func(context.Context, *http.Request) (jobs.PushOutcome, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		outcome, err := jobs.PushOutcome(""), error(errOversized)
		if r.ContentLength <= maxBody {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			outcome, err = take(ctx, r)
		}
		if err == nil {
			h.requests.WithLabelValues(source, string(outcome)).Inc()
			w.WriteHeader(http.StatusNoContent)
			return
		}
		refused, ok := errors.AsType[*refusal](err)
		if _, long := errors.AsType[*http.MaxBytesError](err); long {
			refused, ok = errOversized, true
		}
		if !ok {
			refused = &refusal{http.StatusServiceUnavailable, outcomeFailed, err}
		}
		h.requests.WithLabelValues(source, refused.outcome).Inc()
		h.warn(source, refused)
		if refused.status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		// The sender is not told more: it may be anybody.
		http.Error(w, http.StatusText(refused.status), refused.status)
	})
}

// warn logs a refusal, one a minute at most, since strangers may send as many as
// they like; the others are counted.
func (h *Handler) warn(source string, e *refusal) {
	now, last := time.Now().UnixNano(), h.warned.Load()
	if now-last < int64(time.Minute) || !h.warned.CompareAndSwap(last, now) {
		return
	}
	h.opts.Log.Warn("push refused; others within a minute are only counted",
		zap.String("source", source), zap.String("outcome", e.outcome), zap.Int("status", e.status), zap.Error(e.err))
}
