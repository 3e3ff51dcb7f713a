package fakegoogle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"headroom/internal/lab/fakegoogle/calendar"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/gmail"
	"headroom/internal/lab/fakegoogle/meter"
)

// Options configures a [Server]. The zero value is a Gmail of May 2026 that
// refuses by a sliding minute.
type Options struct {
	// Prices names a price list: gmail-legacy, gmail-2026-05 or gmail-2026-10;
	// gmail-2026-05 if empty.
	Prices string
	// Meter is the algorithm that refuses: fixed, anchored, sliding or bucket;
	// sliding if empty. Windows are a minute over Scale long.
	Meter string
	// Scale makes quota time run that many times faster: every window and every
	// bucket's filling, and the day of BytesPerDay. Limits and costs stay. 1 if zero.
	Scale int
	// Jitter is the median of a random time that a call spends between the socket
	// and the meter, log-normal with sigma 1, at most 30 s. It is real time, not
	// divided by Scale. None if zero.
	Jitter time.Duration
	// Latency is a fixed time between meter and answer, in real time.
	Latency time.Duration

	// UserLimit and ProjectLimit are in units per minute; the price list's if zero.
	UserLimit, ProjectLimit int64
	// CalendarUserLimit and CalendarProjectLimit are the same for Calendar, in
	// requests per minute.
	CalendarUserLimit, CalendarProjectLimit int64
	// InFlightLimit bounds the calls of one user between meter and answer; 50 if zero.
	InFlightLimit int
	// BytesPerDay bounds the raw bytes of messages that one user is sent by full
	// and raw; 2,500 MB if zero. The day begins with the user's first call.
	BytesPerDay int64
	// ChargeRefused makes refused calls use up the limit that refused them. By
	// default they do not; the exact log counts them either way.
	ChargeRefused bool
	// PushBack is the price of calling again before the moment that a "Retry after"
	// answer named, the meter's or a fault's: such calls of that user are refused,
	// and each moves the moment so much later. It is real time, not divided by
	// Scale. If zero, such calls are like any others.
	PushBack time.Duration

	// Seed drives jitter, generated mail and what else is random.
	Seed uint64
	// Log gets a line per call at debug level; none if nil.
	Log *zap.Logger
}

// The defaults of Options.
const (
	DefaultPrices        = "gmail-2026-05"
	DefaultMeter         = meter.Sliding
	DefaultInFlightLimit = 50
	DefaultBytesPerDay   = 2_500_000_000
	MaxJitter            = 30 * time.Second
)

// A Server is the fake: an [http.Handler] that owns mailboxes, a meter and
// faults. It is safe for concurrent use.
type Server struct {
	opts   Options
	log    *zap.Logger
	meter  *meter.Meter
	faults fault.List
	tokens *tokenTable

	calendarMeter *meter.Meter
	channels      *calendar.Channels

	mu        sync.RWMutex
	mailboxes map[string]*gmail.Mailbox
	inOrder   []*gmail.Mailbox
	calendars map[string]*calendar.Account

	randMu sync.Mutex
	rand   *rand.Rand

	unauthenticated atomic.Int64
	unrouted        atomic.Int64

	publisher     *gmail.Publisher
	signer        signer
	baseURL       atomic.Pointer[string] // where Listen serves
	identityCalls atomic.Int64

	life context.Context // ends with Close
	end  context.CancelFunc
}

// New makes a server without mailboxes. It starts nothing.
func New(opts Options) (*Server, error) {
	if opts.Scale < 0 || opts.UserLimit < 0 || opts.ProjectLimit < 0 || opts.InFlightLimit < 0 ||
		opts.CalendarUserLimit < 0 || opts.CalendarProjectLimit < 0 || opts.BytesPerDay < 0 || opts.Jitter < 0 || opts.Latency < 0 || opts.PushBack < 0 {
		return nil, errors.New("fake Google: scale, limits and durations may not be negative")
	}
	opts.Prices = cmp.Or(opts.Prices, DefaultPrices)
	opts.Meter = cmp.Or(opts.Meter, DefaultMeter)
	opts.Scale = cmp.Or(opts.Scale, 1)
	prices, err := meter.GmailPriceList(opts.Prices)
	if err != nil {
		return nil, fmt.Errorf("fake Google: %w", err)
	}
	m, err := meter.New(opts.meter(prices, opts.UserLimit, opts.ProjectLimit))
	if err != nil {
		return nil, fmt.Errorf("fake Google: %w", err)
	}
	// Calendar's own meter has nothing to do with Gmail's but the algorithm. It
	// counts no bytes, so that the limit of a day is never reached.
	prices, err = meter.CalendarPriceList()
	if err != nil {
		return nil, fmt.Errorf("fake Google: %w", err)
	}
	calendarMeter, err := meter.New(opts.meter(prices, opts.CalendarUserLimit, opts.CalendarProjectLimit))
	if err != nil {
		return nil, fmt.Errorf("fake Google: %w", err)
	}
	life, end := context.WithCancel(context.Background())
	s := &Server{
		opts: opts, log: opts.Log, meter: m, tokens: newTokenTable(),
		calendarMeter: calendarMeter, channels: calendar.NewChannels(),
		mailboxes: map[string]*gmail.Mailbox{}, calendars: map[string]*calendar.Account{},
		rand: rand.New(rand.NewPCG(opts.Seed, 0x6661_6b65)),
		life: life, end: end,
	}
	if s.log == nil {
		s.log = zap.NewNop()
	}
	s.publisher = gmail.NewPublisher(life, s.pushToken)
	return s, nil
}

// meter is how a meter with these prices is set; limits that are zero are the
// price list's.
func (o Options) meter(prices *meter.PriceList, userLimit, projectLimit int64) meter.Settings {
	return meter.Settings{
		Prices:        prices,
		Algorithm:     o.Meter,
		UserLimit:     cmp.Or(userLimit, prices.UserMinute),
		ProjectLimit:  cmp.Or(projectLimit, prices.ProjectMinute),
		InFlightLimit: cmp.Or(o.InFlightLimit, DefaultInFlightLimit),
		BytesPerDay:   cmp.Or(o.BytesPerDay, DefaultBytesPerDay),
		Window:        time.Minute / time.Duration(o.Scale),
		Day:           24 * time.Hour / time.Duration(o.Scale),
		ChargeRefused: o.ChargeRefused,
		PushBack:      o.PushBack,
	}
}

// Close lets go of calls that a fault or jitter holds. Later calls are answered,
// but nothing waits any more, and channels send no notifications. It may be called more
// than once.
func (s *Server) Close() {
	s.end()
	s.channels.Stop()
}

// jitter draws the time a call spends on its way to the meter.
func (s *Server) jitter() time.Duration {
	if s.opts.Jitter == 0 {
		return 0
	}
	s.randMu.Lock()
	defer s.randMu.Unlock()
	return min(time.Duration(float64(s.opts.Jitter)*math.Exp(s.rand.NormFloat64())), MaxJitter)
}

// oneInThree is how often Google names the start of its window.
func (s *Server) oneInThree() bool {
	s.randMu.Lock()
	defer s.randMu.Unlock()
	return s.rand.IntN(3) == 0
}

// url is where the fake can be reached; "" unless it listens by itself.
func (s *Server) url() string {
	if url := s.baseURL.Load(); url != nil {
		return *url
	}
	return ""
}

// ServeHTTP serves the API, alone and in batches, the token endpoint, the keys of
// identity tokens and, under
// /_fake/, the controls.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	endpoint, isBatch := batchEndpointOf(r)
	switch {
	case isControl(r):
		s.serveControl(w, r)
	case isIdentity(r):
		s.serveIdentity(w, r)
	case r.URL.Path == "/token":
		s.serveToken(w, r)
	case isBatch:
		s.serveBatch(w, r, endpoint)
	default:
		s.serveAPI(w, r)
	}
}
