package meter

import (
	"fmt"
	"strings"
	"time"
)

// A limiter is one algorithm that Google may be using on one limit. Times are
// monotonic, since the server's start, and never decrease. A limiter is not safe
// for concurrent use: the meter's lock guards it.
type limiter interface {
	// fits reports whether units more would stay within the limit at now.
	fits(now time.Duration, units int64) bool
	// take spends units at now, whether they fit or not.
	take(now time.Duration, units int64)
	// setLimit changes the limit from now on; what was spent stays spent.
	setLimit(now time.Duration, limit int64)
}

// The algorithms by which a Server can refuse.
const (
	Fixed    = "fixed"    // minutes aligned to the wall clock
	Anchored = "anchored" // minutes that begin with the first call after the last one's end
	Sliding  = "sliding"  // every window of a minute, exactly
	Bucket   = "bucket"   // limit/60 a second, with a burst
)

// Algorithms returns the algorithms.
func Algorithms() []string { return []string{Fixed, Anchored, Sliding, Bucket} }

// bucketBurst and bucketBurstLimit are how deep a token bucket is: a burst of
// 1,100 units at a limit of 6,000, and in proportion at other limits. They come
// from the harshest refusal on record (160 units a second tripped after 18 s).
const (
	bucketBurst      = 1_100
	bucketBurstLimit = 6_000
)

// newLimiter makes a limiter of limit units per window. epoch is the wall time
// of monotonic zero, for alignment. A bucket is at least deepest units deep,
// so that even a small limit lets every method through.
func newLimiter(algorithm string, limit int64, window time.Duration, epoch time.Time, deepest int64) (limiter, error) {
	switch algorithm {
	case Fixed:
		return &fixedWindow{limit: limit, window: window, epoch: epoch}, nil
	case Anchored:
		return &anchoredWindow{limit: limit, window: window}, nil
	case Sliding:
		return &slidingWindow{limit: limit, window: window}, nil
	case Bucket:
		b := &tokenBucket{window: window, deepest: float64(deepest)}
		b.setLimit(0, limit)
		b.tokens = b.burst
		return b, nil
	default:
		return nil, fmt.Errorf("unknown meter %q: choose one of %s", algorithm, strings.Join(Algorithms(), ", "))
	}
}

// fixedWindow counts units in windows aligned to the wall clock.
type fixedWindow struct {
	limit  int64
	window time.Duration
	epoch  time.Time
	start  time.Time
	used   int64
}

// startAt returns the wall time at which the window around now began.
func (f *fixedWindow) startAt(now time.Duration) time.Time {
	at := f.epoch.Add(now).UnixNano()
	return time.Unix(0, at-at%int64(f.window))
}

func (f *fixedWindow) roll(now time.Duration) {
	if start := f.startAt(now); start.After(f.start) {
		f.start, f.used = start, 0
	}
}

func (f *fixedWindow) fits(now time.Duration, units int64) bool {
	f.roll(now)
	return f.used+units <= f.limit
}

func (f *fixedWindow) take(now time.Duration, units int64) {
	f.roll(now)
	f.used += units
}

func (f *fixedWindow) setLimit(_ time.Duration, limit int64) { f.limit = limit }

// anchoredWindow counts units in windows that begin with the first call after the
// last one's end. A call that is refused begins none.
type anchoredWindow struct {
	limit  int64
	window time.Duration
	start  time.Duration
	used   int64
	begun  bool // there was a first call
}

// open reports whether a window that has begun lasts at now.
func (a *anchoredWindow) open(now time.Duration) bool { return a.begun && now < a.start+a.window }

func (a *anchoredWindow) fits(now time.Duration, units int64) bool {
	if !a.open(now) {
		return units <= a.limit
	}
	return a.used+units <= a.limit
}

func (a *anchoredWindow) take(now time.Duration, units int64) {
	if !a.open(now) {
		a.start, a.used, a.begun = now, 0, true
	}
	a.used += units
}

func (a *anchoredWindow) setLimit(_ time.Duration, limit int64) { a.limit = limit }

// slidingWindow sums the units of the half-open window (now-window, now].
type slidingWindow struct {
	limit  int64
	window time.Duration
	spent  span
}

func (s *slidingWindow) fits(now time.Duration, units int64) bool {
	s.spent.dropUntil(now - s.window)
	return s.spent.units+units <= s.limit
}

func (s *slidingWindow) take(now time.Duration, units int64) {
	s.spent.dropUntil(now - s.window)
	s.spent.push(spending{at: now, units: units})
}

func (s *slidingWindow) setLimit(_ time.Duration, limit int64) { s.limit = limit }

// tokenBucket refills steadily. It can owe tokens when refused calls are
// charged too, but never more than one burst.
type tokenBucket struct {
	window                   time.Duration
	deepest                  float64
	burst, perSecond, tokens float64
	at                       time.Duration
}

func (b *tokenBucket) refill(now time.Duration) {
	b.tokens = min(b.burst, b.tokens+(now-b.at).Seconds()*b.perSecond)
	b.at = now
}

func (b *tokenBucket) fits(now time.Duration, units int64) bool {
	b.refill(now)
	return b.tokens >= float64(units)
}

func (b *tokenBucket) take(now time.Duration, units int64) {
	b.refill(now)
	b.tokens = max(b.tokens-float64(units), -b.burst)
}

func (b *tokenBucket) setLimit(now time.Duration, limit int64) {
	b.refill(now)
	b.burst = max(float64(limit)*bucketBurst/bucketBurstLimit, b.deepest)
	b.perSecond = float64(limit) / b.window.Seconds()
	b.tokens = min(b.tokens, b.burst)
}
