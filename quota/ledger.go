package quota

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"headroom/quota/price"
)

// Options configure a [Ledger]. Redis and Projects are required.
type Options struct {
	// Redis keeps the windows. Its client must not retry by itself, since an
	// attempt whose answer was lost may have been charged; see [ClientOptions].
	Redis    redis.UniversalClient
	Projects map[string]Project // by the name of the Google Cloud project

	// Scale makes quota time run so many times faster: windows, buckets, guard
	// and pace are divided by it, limits and costs stay. For tests and demos; 1
	// if zero.
	Scale     int
	KeyPrefix string // of every key; installations that share a Redis differ in it

	// Fresh says that where Redis holds no windows of a project when the ledger
	// first asks, nothing was spent: it was started for this ledger. Without it, nobody knows what was
	// spent before the windows were lost, so the background holds for one window,
	// and interactive calls keep to what its ceilings leave.
	Fresh bool
	// Plain sends every decision by itself. By default the decisions that many
	// goroutines ask for at once travel together.
	Plain bool
	// Journal lets people read what is decided and why; nil: nobody can.
	Journal *Journal

	// FailOpen is the share of each limit up to which this process lets interactive
	// calls in by itself while Redis does not answer; never more than what the
	// ceilings of the background lanes leave. 0: [DefaultFailOpen], so that people
	// are not stopped by a Redis that hangs; [NoFailOpen]: none. Each process counts
	// for itself: where several serve people, a tenth is to be divided by their number.
	FailOpen float64

	Log        *zap.Logger           // nothing is logged if nil
	Registerer prometheus.Registerer // metrics are not registered if nil

	noGuard bool // see WithoutGuard
}

// Values of [Options.FailOpen]: what stands for 0, and what stands for none.
const (
	DefaultFailOpen = 0.1
	NoFailOpen      = -1
)

// A Ledger counts units in sliding windows that all callers of a Redis share. It
// is safe for concurrent use by any number of goroutines, processes and hosts.
type Ledger struct {
	rdb     redis.UniversalClient
	prefix  string
	scale   int
	buckets buckets
	books   map[projectAPI]*book
	calls   *coalescer // nil: every call goes by itself
	denials denials
	slots   *slots
	acquire *redis.Script // acquire.lua
	queue   queue
	journal *Journal
	metrics *metrics
	log     *zap.Logger
	today   func() time.Time // the local clock, which only tells which day it is
	now     func() time.Time // nil: the clock of Redis. Only tests and Simulate set it
}

type projectAPI struct{ project, api string }

// NewLedger checks the projects' settings and returns a ledger. It does not
// touch Redis.
func NewLedger(o Options) (*Ledger, error) {
	if o.Redis == nil {
		return nil, errors.New("quota: no Redis client")
	}
	if err := noRetries(o.Redis); err != nil {
		return nil, err
	}
	if o.Scale == 0 {
		o.Scale = 1
	}
	if o.Scale < 1 || o.Scale > 1000 {
		return nil, fmt.Errorf("quota: scale %d is not from 1 to 1000", o.Scale)
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	l := &Ledger{
		log:     o.Log.Named("quota"),
		rdb:     o.Redis,
		prefix:  o.KeyPrefix,
		scale:   o.Scale,
		today:   time.Now,
		buckets: buckets{bucketWidth, guard},
		books:   map[projectAPI]*book{},
		metrics: newMetrics(o.Registerer),
		slots:   newSlots(),
		acquire: acquireScript,
	}
	if o.Journal != nil {
		l.journal, o.Journal.ledger = o.Journal, l
	}
	switch {
	case o.FailOpen == 0:
		o.FailOpen = DefaultFailOpen
	case o.FailOpen == NoFailOpen:
		o.FailOpen = 0
	case !(o.FailOpen > 0 && o.FailOpen <= 1):
		return nil, fmt.Errorf("quota: fail-open share %v is not above 0 and up to 1, nor NoFailOpen", o.FailOpen)
	}
	if o.noGuard {
		l.buckets = buckets{width: exactWidth}
	}
	if !o.Plain {
		l.calls = &coalescer{rdb: o.Redis}
	}
	spellings := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(o.Projects)) {
		project := o.Projects[name]
		if problem := projectProblem(name); problem != "" {
			return nil, fmt.Errorf("quota: project %.80q: %s", name, problem)
		}
		if other, seen := spellings[strings.ToLower(name)]; seen {
			return nil, fmt.Errorf("quota: projects %q and %q differ in case only; a Google Cloud project has one quota, so give it one name", other, name)
		}
		spellings[strings.ToLower(name)] = name
		if err := project.validate(); err != nil {
			return nil, fmt.Errorf("quota: project %s: %w", name, err)
		}
		for _, list := range project.Lists {
			b := &book{name: name, project: project, list: list}
			b.fresh.Store(o.Fresh)
			r, err := l.makeRules(b, Live{})
			if err != nil {
				return nil, fmt.Errorf("quota: project %s: %w", name, err)
			}
			b.rules.Store(r)
			b.breaker = l.newBreaker(name, list.API, r.all[Interactive], o)
			l.books[projectAPI{name, list.API}] = b
		}
	}
	return l, nil
}

// Scale is by how much quota time runs faster than the clock; see [Options.Scale].
func (l *Ledger) Scale() int { return l.scale }

// Usage is how full a limit is for a caller.
type Usage struct {
	Limit   string `json:"limit"`
	Units   int64  `json:"units"`   // Google's limit
	Ceiling int64  `json:"ceiling"` // what the caller's lane may fill of it
	Used    int64  `json:"used"`    // by all lanes, after the decision
}

// Decision is the ledger's answer when the units were granted, or when nothing
// was asked for.
type Decision struct {
	Charge Charge  // its Units were charged to every limit
	Usage  []Usage // of the project's limits, of the user's, and of the day if it has a budget

	// Local says that Redis did not answer, and this process let the call in by
	// itself: see [Options.FailOpen]. Usage is what it counted then. Redis is told
	// when it answers again.
	Local bool

	// Project and User say what is special about the two; only [Ledger.Peek] asks.
	Project, User ScopeState
}

// A Charge names units that were charged. The zero Charge names none.
type Charge struct {
	Caller Caller
	API    string
	Units  int64
	At     time.Time // on the clock of Redis
}

// ScopeState is what holds for a whole project or user beside what was spent. The
// zero value: nothing special.
type ScopeState struct {
	ClosedUntil  time.Time // a cool-down; zero: open
	Cooldown     Cooldown  // what is known of it
	UnknownUntil time.Time // Redis lost the windows; zero: it did not
	// Share of every limit that may be used since Google refused calls; 0 or 1: all.
	Share float64
	// Lent is how much lane backfill's ceilings gave way to what people asked for
	// lately, as a share of the limits; see [ModeAdaptive].
	Lent float64
}

// Cost returns what a call costs a project in units. A method that the price
// list does not know costs as much as its dearest, and is counted in a metric.
func (l *Ledger) Cost(project string, m Method) (int64, error) {
	b, err := l.book(project, m.API)
	if err != nil {
		return 0, err
	}
	units, known := b.list.Cost(m.ID, m.Format)
	if !known {
		l.metrics.unknownMethods.WithLabelValues(m.API).Inc()
	}
	return units, nil
}

// Take charges cost units to all of a caller's limits for an API, or to none. It
// asks once and does not wait.
//
// When the units do not fit now, the error is a [*DeniedError] that says which
// limit bound and when they will; when they never can, [ErrNeverFits]; when
// Redis did not answer, [ErrUnavailable], and whether the units were charged is
// unknown.
func (l *Ledger) Take(ctx context.Context, c Caller, api string, cost int64) (Decision, error) {
	d, err := l.take(ctx, c, api, cost, nil)
	l.journal.decided(c, api, cost, d, err)
	return d, err
}

// Peek reports how full a caller's limits are for an API, and charges nothing. A
// caller without a user looks at the project.
func (l *Ledger) Peek(ctx context.Context, c Caller, api string) (Decision, error) {
	d, err := l.take(ctx, c, api, 0, nil)
	if err != nil {
		return d, err
	}
	b, err := l.book(c.Project, api)
	if err != nil {
		return d, err
	}
	p := b.rules.Load().plan(c.User, c.Lane)
	if until := d.Project.ClosedUntil; !until.IsZero() {
		d.Project.Cooldown = l.aboutHold(ctx, b, p, "", until)
	}
	if until := d.User.ClosedUntil; !until.IsZero() && c.User != "" {
		d.User.Cooldown = l.aboutHold(ctx, b, p, c.User, until)
	}
	return d, nil
}

// take asks for units, and for a slot unless that is nil.
func (l *Ledger) take(ctx context.Context, c Caller, api string, cost int64, s *slot) (Decision, error) {
	b, err := l.book(c.Project, api)
	if err != nil {
		return Decision{}, err
	}
	if cost == 0 && c.User == "" && c.Lane.Valid() {
		// A look at the project.
	} else if err := c.Validate(); err != nil {
		return Decision{}, err
	}
	if cost < 0 || cost > price.MaxUnits {
		return Decision{}, fmt.Errorf("quota: cost %d is not from 0 to %d", cost, price.MaxUnits)
	}
	p := b.rules.Load().plan(c.User, c.Lane)
	if l.now == nil && cost <= p.most {
		if denied := l.denials.recall(c, api, cost); denied != nil {
			l.metrics.denied(c, denied.Limit, denied.Bound)
			return Decision{}, denied
		}
	}
	var reply []int64
	asked := time.Now()
	err = l.reach(ctx, b, c, func(ctx context.Context) (err error) {
		p, reply, err = l.ask(ctx, b, c, question{cost: cost, slot: s})
		return err
	})
	if errors.Is(err, ErrUnavailable) && ctx.Err() == nil && b.breaker.aids(c.Lane) && cost > 0 {
		return b.breaker.admit(b.rules.Load().plan(c.User, c.Lane), c, cost, err)
	}
	if err != nil {
		l.metrics.count(c, "error", "")
		return Decision{}, err
	}
	b.fresh.Store(false) // from now on, windows that are missing were lost
	d, err := l.decide(c, api, p, cost, reply, s)
	if denied, ok := errors.AsType[*DeniedError](err); ok {
		if denied.Bound == BoundHold {
			l.explain(ctx, b, p, denied)
		}
		if l.now == nil && denied.Limit != LimitInFlight {
			l.denials.remember(c, api, denied)
		}
	}
	if err == nil {
		b.breaker.note(c, d.Charge.Units)
		if s != nil {
			l.slots.add(l, s, asked)
		}
	}
	return d, err
}

// maxRevisions bounds how often a decision is made anew because settings changed
// meanwhile.
const maxRevisions = 4

// A question to acquire.lua. The zero question is a look.
type question struct {
	cost  int64
	spent bool  // the units are spent already: they are charged although they do not fit
	slot  *slot // that is to be taken; nil: none
}

// ask runs acquire.lua by the settings in force, and returns the plan that the reply
// is about.
func (l *Ledger) ask(ctx context.Context, b *book, c Caller, q question) (*plan, []int64, error) {
	start := time.Now()
	defer func() { l.metrics.roundTrip.Observe(time.Since(start).Seconds()) }()
	var name string
	if q.slot != nil {
		name = q.slot.name
	}
	for range maxRevisions {
		p := b.rules.Load().plan(c.User, c.Lane)
		args := []any{p.request(q, l.today()), name}
		if l.now != nil {
			args = []any{p.request(q, l.now()), name, l.now().UnixMicro()}
		}
		reply, err := l.eval(ctx, l.acquire, p.acquireKeys(c.User), args...)
		if err != nil {
			return nil, nil, unavailable(err)
		}
		if len(reply) != 2 || reply[replyGranted] != otherRevision {
			return p, reply, nil
		}
		if err := l.catchUp(ctx, b, uint32(reply[1])); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("%w, nothing was charged: settings of project %s change too fast", ErrUnavailable, b.name)
}

// unavailable says that the ledger gave no answer. A call that was given up
// before it was sent is its caller's doing.
func unavailable(err error) error {
	if errors.Is(err, errNotSent) {
		return err
	}
	if notRun(err) {
		return fmt.Errorf("%w, nothing was charged: %w", ErrUnavailable, err)
	}
	return fmt.Errorf("%w, and whether units were charged is unknown: %w", ErrUnavailable, err)
}

func (l *Ledger) book(project, api string) (*book, error) {
	b, ok := l.books[projectAPI{project, api}]
	if !ok {
		return nil, fmt.Errorf("%w %q, or no price list of it is for %q", ErrUnknownProject, project, api)
	}
	return b, nil
}

// plan finds how a caller's decisions are made.
func (l *Ledger) plan(c Caller, api string) (*plan, error) {
	b, err := l.book(c.Project, api)
	if err != nil {
		return nil, err
	}
	if !c.Lane.Valid() {
		return nil, c.Validate()
	}
	return b.rules.Load().plan(c.User, c.Lane), nil
}

// eval runs a script and reads its answer.
func (l *Ledger) eval(ctx context.Context, script *redis.Script, keys []string, args ...any) ([]int64, error) {
	if l.calls != nil {
		return l.calls.eval(ctx, script, keys, args)
	}
	return script.Run(ctx, l.rdb, keys, args...).Int64Slice()
}

// otherRevision is in place of what was granted when the settings have changed.
const otherRevision = -2

// Where things stand in acquire.lua's reply. When the cost was refused, the wait, the window,
// the part that bound and its ceiling come after what is used; when the ledger was
// only looked at, the ceilings and the state of project and user.
const (
	replyGranted = iota
	replyNow
	replyInFlight
	replyDay
	replyUsed
)

// The parts of a limit as acquire.lua has them.
const (
	partInFlight = 5
	partBytes    = 6
)

var boundParts = map[int64]Bound{1: BoundCeiling, 2: BoundPace, 3: BoundHold, 4: BoundUnknown}

// decide makes of acquire.lua's reply what it means.
func (l *Ledger) decide(c Caller, api string, p *plan, cost int64, reply []int64, s *slot) (Decision, error) {
	last, look := replyUsed+len(p.windows), cost == 0 && s == nil
	if n := len(reply); n < last || reply[replyGranted] < 0 && n != last+4 || look && n != last+len(p.windows)+2*stateSize {
		return Decision{}, fmt.Errorf("%w: an answer of %d numbers", ErrUnavailable, n)
	}
	at := time.UnixMicro(reply[replyNow])
	usage := make([]Usage, len(p.windows), len(p.windows)+1)
	for i, w := range p.windows {
		usage[i] = Usage{Limit: w.limit, Units: w.units, Ceiling: w.ceiling, Used: reply[replyUsed+i]}
	}
	usage = append(usage, p.dayUsage(at, reply[replyDay]))
	if granted := reply[replyGranted]; granted >= 0 {
		if p.day == nil {
			usage = usage[:len(p.windows)]
		} else if granted > 0 {
			l.overBudget(c, api, p.day, at, reply[replyDay], granted)
		}
		for i := range usage {
			usage[i].Used += granted
		}
		if s != nil {
			s.at, s.inFlight = at, reply[replyInFlight]
		}
		if cost > 0 { // a look is no decision
			l.metrics.count(c, "admitted", "")
		}
		l.metrics.units.WithLabelValues(string(c.Lane)).Add(float64(granted))
		d := Decision{Charge: Charge{Caller: c, API: api, Units: granted, At: at}, Usage: usage}
		if look {
			for i := range p.windows {
				usage[i].Ceiling = reply[last+i]
			}
			states := reply[last+len(p.windows):]
			d.Project, d.User = readState(states), readState(states[stateSize:])
		}
		return d, nil
	}
	wait, window, part, ceiling := reply[last], reply[last+1], reply[last+2], reply[last+3]
	if part == partInFlight || part == partBytes {
		return Decision{}, l.deniedSlot(c, at, part, time.Duration(wait)*time.Microsecond, reply[replyInFlight], ceiling)
	}
	if window < 1 || window > int64(len(usage)) {
		return Decision{}, fmt.Errorf("%w: an answer about window %d", ErrUnavailable, window)
	}
	u := usage[window-1]
	if wait < 0 {
		l.metrics.count(c, "never", u.Limit)
		return Decision{}, fmt.Errorf("%w: %d units, but lane %s may fill %s up to %d only", ErrNeverFits, cost, c.Lane, u.Limit, u.Ceiling)
	}
	bound := boundParts[part]
	if p.paced && u.Limit == price.ProjectDay && u.Used+cost <= p.budget { // its turn comes before the day ends
		bound, wait = BoundPace, min(wait, p.day.reaches(u.Used+cost, at).Sub(at).Microseconds())
	}
	l.metrics.denied(c, u.Limit, bound)
	d := time.Duration(min(wait, math.MaxInt64/1000)) * time.Microsecond
	return Decision{}, &DeniedError{
		Caller: c, Cost: cost, Limit: u.Limit, Bound: bound,
		Used: u.Used, Ceiling: ceiling, RetryAfter: d, At: at.Add(d),
	}
}

// deniedSlot is the error for a call that the user's calls in flight, or bytes, refuse.
func (l *Ledger) deniedSlot(c Caller, at time.Time, part int64, wait time.Duration, used, most int64) *DeniedError {
	e := &DeniedError{Caller: c, Limit: LimitInFlight, Bound: BoundInFlight, Used: used, Ceiling: most, RetryAfter: minRetry + rand.N(maxRetry-minRetry)}
	if part == partBytes {
		e.Limit, e.Bound, e.RetryAfter = LimitUserBytes, BoundCeiling, wait
		l.metrics.denied(c, e.Limit, e.Bound)
	}
	e.At = at.Add(e.RetryAfter)
	return e
}

// minRetry and maxRetry bound when a call that found no slot should ask again: nobody
// knows when one is free.
const (
	minRetry = 100 * time.Millisecond
	maxRetry = 250 * time.Millisecond
)

// testClock is the clock that a script goes by in tests, in us; 0: that of Redis.
func (l *Ledger) testClock() int64 {
	if l.now == nil {
		return 0
	}
	return l.now().UnixMicro()
}

// stateSize is how many numbers a look says of a scope.
const stateSize = 4

func readState(n []int64) ScopeState {
	s := ScopeState{Share: float64(n[2]) / 1000, Lent: float64(n[3]) / 1000}
	if n[0] > 0 {
		s.ClosedUntil = time.UnixMilli(n[0])
	}
	if n[1] > 0 {
		s.UnknownUntil = time.UnixMilli(n[1])
	}
	return s
}
