package quota

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

const (
	// How long a decision may take before Redis counts as failing: where people
	// wait and can go on without it, and otherwise.
	patience         = time.Second
	patienceUnaided  = 1500 * time.Millisecond
	probeEvery       = time.Second
	maxRepayments    = 32 // at once
	repaymentTimeout = 30 * time.Second
)

// errNoAnswer is the cause with which a question to Redis is given up.
var errNoAnswer = fmt.Errorf("no answer from Redis in time: %w", context.DeadlineExceeded)

// A breaker stands between the decisions of one API of a project and Redis. It is
// open while Redis does not answer, or not in time: then nobody asks, but for one
// look a second. Background calls are refused at once, and interactive ones go on
// within [Options.FailOpen] of each limit, which the process counts by itself.
//
// It closes when Redis has answered a look in time and was told what was spent
// meanwhile, so that nobody's next decision misses it.
type breaker struct {
	project, api string
	share        float64
	began        time.Time // of the local windows' first bucket
	metrics      *metrics
	log          *zap.Logger

	mu    sync.Mutex
	cause error     // why it is open; nil: it is closed
	since time.Time // when it opened
	seen  time.Time // up to when the time that it is open was counted
	next  time.Time // when to look again
	local localWindows
}

func (l *Ledger) newBreaker(project, api string, p *plan, o Options) *breaker {
	b := &breaker{project: project, api: api, share: o.FailOpen, began: time.Now(), metrics: l.metrics, log: o.Log}
	if b.log == nil {
		b.log = zap.NewNop()
	}
	b.local.width = time.Duration(p.width) * time.Microsecond
	for _, w := range p.windows {
		b.local.kept = max(b.local.kept, w.buckets)
	}
	return b
}

// reach asks Redis, if it is known to answer, and only for as long as the caller
// can wait. Errors wrap [ErrUnavailable] but for those that are the caller's doing.
func (l *Ledger) reach(ctx context.Context, b *book, c Caller, ask func(context.Context) error) error {
	br := b.breaker
	if cause := l.away(ctx, b, c); cause != nil {
		return fmt.Errorf("%w and is not asked, nothing was charged: %w", ErrUnavailable, cause)
	}
	limit := patienceUnaided
	if br.aids(c.Lane) {
		limit = patience
	}
	bounded, cancel := context.WithTimeoutCause(ctx, limit, errNoAnswer)
	defer cancel()
	err := ask(bounded)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if errors.Is(err, errNotSent) {
		err = fmt.Errorf("%w, nothing was charged: %w", ErrUnavailable, errNoAnswer)
	}
	if errors.Is(err, ErrUnavailable) {
		br.mu.Lock()
		br.open(err, time.Now())
		br.mu.Unlock()
	}
	return err
}

// broken says that Redis is not asked, nil if it is.
func (b *breaker) broken() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cause == nil {
		return nil
	}
	return fmt.Errorf("%w and is not asked: %w", ErrUnavailable, b.cause)
}

// aids reports whether calls of a lane go on without Redis.
func (b *breaker) aids(lane Lane) bool { return lane == Interactive && b.share > 0 }

// open notes that Redis does not answer. B.mu must be held.
func (b *breaker) open(cause error, now time.Time) {
	if b.cause == nil {
		b.since, b.seen, b.next = now, now, now.Add(probeEvery)
		b.log.Warn("redis does not answer the ledger: background calls wait, interactive ones keep to a share of each limit",
			zap.String("project", b.project), zap.String("api", b.api), zap.Float64("share", b.share), zap.Error(cause))
	}
	b.cause = cause
}

// away returns why Redis is not asked now, nil if it is. Once a second it has
// Redis looked at; a caller that cannot go on by itself waits for what comes of it.
func (l *Ledger) away(ctx context.Context, b *book, c Caller) error {
	br := b.breaker
	br.mu.Lock()
	cause, now := br.cause, time.Now()
	if cause == nil {
		br.mu.Unlock()
		return nil
	}
	br.tally(now)
	if now.Before(br.next) {
		br.mu.Unlock()
		return cause
	}
	br.next = now.Add(probeEvery)
	br.mu.Unlock()

	done := make(chan struct{})
	go func() {
		defer close(done)
		l.probe(context.WithoutCancel(ctx), b, c)
	}()
	if br.aids(c.Lane) {
		return cause
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
	br.mu.Lock()
	defer br.mu.Unlock()
	return br.cause
}

// tally counts the time that the breaker was open. B.mu must be held.
func (b *breaker) tally(now time.Time) {
	b.metrics.failOpenSeconds.Add(now.Sub(b.seen).Seconds())
	b.seen = now
}

// probe looks whether Redis answers in time, and if so tells it what it missed.
func (l *Ledger) probe(ctx context.Context, b *book, c Caller) {
	br := b.breaker
	look, cancel := context.WithTimeoutCause(ctx, patience, errNoAnswer)
	defer cancel()
	_, _, err := l.ask(look, b, c, question{})
	if err == nil {
		tell, cancel := context.WithTimeoutCause(ctx, repaymentTimeout, errNoAnswer)
		defer cancel()
		err = l.repay(tell, b)
	}
	if err == nil {
		return
	}
	br.mu.Lock()
	defer br.mu.Unlock()
	br.next = time.Now().Add(probeEvery)
	if br.cause != nil {
		br.cause = err
	}
}

// debt is what Redis has not been told of a user, or of the project.
type debt struct {
	user  string // "": the project
	units int64
	hold  localHold
}

// repay tells Redis what happened without it and still counts, and closes the
// breaker when nothing is left. What may have been charged already, because an
// answer was lost, stays owed: rather twice than not at all.
func (l *Ledger) repay(ctx context.Context, b *book) error {
	for {
		debts := b.breaker.debts()
		if len(debts) == 0 {
			return nil
		}
		var group errgroup.Group
		group.SetLimit(maxRepayments)
		for _, d := range debts {
			group.Go(func() error { return l.tell(ctx, b, d) })
		}
		if err := group.Wait(); err != nil {
			return fmt.Errorf("tell what happened meanwhile: %w", err)
		}
	}
}

// tell pays one debt.
func (l *Ledger) tell(ctx context.Context, b *book, d debt) error {
	c := Caller{Project: b.name, User: d.user, Lane: Interactive}
	if wait := time.Until(d.hold.until); d.hold.untold && wait > 0 {
		o := order{caller: c, api: b.list.API, wait: wait, user: d.user != "", learn: d.hold.learn, about: d.hold.about}
		if _, _, _, err := l.writeHold(ctx, o); err != nil {
			return err
		}
	}
	if d.units > 0 {
		if _, _, err := l.ask(ctx, b, c, question{cost: d.units, spent: true}); err != nil {
			return err
		}
	}
	b.breaker.settled(d)
	return nil
}

// debts returns what Redis has not been told. When there is nothing the breaker
// closes: in the same breath, so that nothing comes between.
func (b *breaker) debts() (debts []debt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	oldest := b.bucket(now) - b.local.kept
	if b.local.project.hold.untold {
		debts = append(debts, debt{hold: b.local.project.hold})
	}
	for user, u := range b.local.users {
		u.owed.forget(oldest)
		if d := (debt{user, u.owed.since(oldest), u.hold}); d.units > 0 || d.hold.untold {
			debts = append(debts, d)
		}
	}
	if len(debts) == 0 && b.cause != nil {
		b.tally(now)
		b.cause = nil
		b.log.Warn("redis answers the ledger again", zap.String("project", b.project), zap.String("api", b.api),
			zap.Duration("after", now.Sub(b.since)))
	}
	return debts
}

// settled notes that Redis was told of a debt.
func (b *breaker) settled(d debt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	scope := b.local.scope(d.user)
	scope.owed.pay(d.units)
	if scope.hold == d.hold {
		scope.hold.untold = false
	}
}

// bucket is the number of the local windows' bucket.
func (b *breaker) bucket(now time.Time) int64 { return int64(now.Sub(b.began) / b.local.width) }

// note records what Redis let a person's call spend.
func (b *breaker) note(c Caller, units int64) {
	if !b.aids(c.Lane) || units == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.local.note(c.User, b.bucket(time.Now()), units, false)
}

// noteHold records a cool-down, and whether Redis must still be told.
func (b *breaker) noteHold(user string, h localHold, cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	scope := b.local.scope(user)
	if h.until.After(scope.hold.until) {
		scope.hold = h
	}
	if h.untold {
		b.open(cause, time.Now()) // it stays open until Redis was told
	}
}

// admit lets a person's call in without Redis, or refuses it. Cause is why Redis
// was not asked, and the error for a call that only Redis could let in.
func (b *breaker) admit(p *plan, c Caller, cost int64, cause error) (Decision, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	usage, denied := b.local.check(p, b.share, c.User, cost, now.Sub(b.began), now)
	switch {
	case denied == nil:
	case denied.wait < 0:
		b.metrics.count(c, "error", "")
		return Decision{}, fmt.Errorf("%w; of %s, %d units are more than may be spent without it", cause, denied.usage.Limit, cost)
	default:
		b.metrics.denied(c, denied.usage.Limit, denied.bound)
		return Decision{}, &DeniedError{
			Caller: c, Cost: cost, Limit: denied.usage.Limit, Bound: denied.bound,
			Used: denied.usage.Used, Ceiling: denied.usage.Ceiling, RetryAfter: denied.wait, At: now.Add(denied.wait), Cooldown: denied.about,
		}
	}
	b.open(cause, now) // it may have closed just now; it stays open until Redis was told
	b.local.note(c.User, b.bucket(now), cost, true)
	b.metrics.count(c, "local", "")
	b.metrics.units.WithLabelValues(string(c.Lane)).Add(float64(cost))
	b.metrics.failOpenCalls.Inc()
	b.metrics.failOpenUnits.Add(float64(cost))
	return Decision{Charge: Charge{Caller: c, API: b.api, Units: cost}, Usage: usage, Local: true}, nil
}
