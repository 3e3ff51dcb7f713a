package scheduler

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"headroom/internal/cronspec"
	"headroom/jobs"
)

// Timing says when a schedule runs for an account.
type Timing struct {
	Spec    string        // cron specification; "": never
	Zone    string        // of the specification; UTC if empty
	Spread  time.Duration // over which accounts are spread; negative: [DefaultSpread]
	CatchUp bool          // slots that were missed are made up for by one run
	Paused  bool
}

// DefaultSpread bounds how long after its slot a run may be, unless the timing sets
// another bound: a time of day is meant as it is written. An "@every" names no time of
// day, and spreads over all of its interval.
const DefaultSpread = time.Hour

const (
	catchUpWindow = 10 * time.Minute // bound on how long runs that catch up are spread
	latePatience  = time.Minute      // a run that is later than this catches up
	countMost     = 10_000           // missed slots are counted up to here
	mostCached    = 4096             // answers that a timing keeps
)

// A timing is a [Timing] that was read. All accounts share its slots, so it keeps
// what it has found. It is not safe for concurrent use.
type timing struct {
	Timing
	slots  cronspec.Slots
	always bool // an "@every"

	nexts  map[int64]time.Time
	floors map[int64]time.Time
	counts map[[2]int64]int64
}

func newTiming(t Timing) (*timing, error) {
	s, err := cronspec.Parse(t.Spec, t.Zone)
	if err != nil {
		return nil, fmt.Errorf("schedule %q in zone %q: %w", t.Spec, t.Zone, err)
	}
	_, always := s.(cronspec.Every)
	return &timing{Timing: t, slots: s, always: always,
		nexts: map[int64]time.Time{}, floors: map[int64]time.Time{}, counts: map[[2]int64]int64{}}, nil
}

// id is the specification as slots are noted with it.
func (t *timing) id() string {
	if t.Zone == "" || t.always {
		return t.Spec
	}
	return t.Spec + " " + t.Zone
}

// cached returns what was found for a key, or finds it.
func cached[K comparable, V any](known map[K]V, key K, find func() V) V {
	if v, ok := known[key]; ok {
		return v
	}
	if len(known) >= mostCached {
		clear(known)
	}
	v := find()
	known[key] = v
	return v
}

// next is the first slot after one, or after any moment.
func (t *timing) next(slot time.Time) time.Time {
	return cached(t.nexts, slot.UnixMilli(), func() time.Time { return t.slots.Next(slot) })
}

// gap is how long after a slot the next one is.
func (t *timing) gap(slot time.Time) time.Duration {
	if next := t.next(slot); !next.IsZero() {
		return next.Sub(slot)
	}
	return DefaultSpread
}

// due is when a slot's run is due for an account: always before the next slot.
func (t *timing) due(slot time.Time, p position) time.Time {
	return slot.Add(of(p.offset, t.width(slot)))
}

// width is over how long the accounts' runs of a slot are spread.
func (t *timing) width(slot time.Time) time.Duration {
	width := t.gap(slot)
	switch {
	case t.Spread >= 0:
		width = min(width, t.Spread)
	case !t.always:
		width = min(width, DefaultSpread)
	}
	return width
}

// patience is how late a slot's run may be and still count as on time.
func (t *timing) patience(slot time.Time) time.Duration { return min(t.gap(slot), latePatience) }

// floor is the last slot that is not after a moment, or the zero time when there
// is none within some years.
func (t *timing) floor(at time.Time) time.Time {
	if e, ok := t.slots.(cronspec.Every); ok {
		return e.Next(at).Add(-time.Duration(e))
	}
	return cached(t.floors, at.UnixMilli(), func() time.Time {
		for back := time.Minute; back < 10*365*24*time.Hour; back *= 2 {
			slot := t.next(at.Add(-back))
			if slot.IsZero() || slot.After(at) {
				continue
			}
			for next := t.next(slot); !next.IsZero() && !next.After(at); next = t.next(slot) {
				slot = next
			}
			return slot
		}
		return time.Time{}
	})
}

// lastDue is the last slot whose run is due by a moment.
func (t *timing) lastDue(now time.Time, p position) time.Time {
	slot := t.floor(now)
	if !slot.IsZero() && t.due(slot, p).After(now) {
		slot = t.floor(slot.Add(-time.Millisecond))
	}
	return slot
}

// between counts the slots after one moment and before another, up to
// [countMost].
func (t *timing) between(after, before time.Time) int64 {
	return cached(t.counts, [2]int64{after.UnixMilli(), before.UnixMilli()}, func() (n int64) {
		for slot := t.next(after); n < countMost && !slot.IsZero() && slot.Before(before); slot = t.next(slot) {
			n++
		}
		return n
	})
}

// A timetable finds the timings of schedules and accounts, each of which it reads once.
type timetable struct {
	timingFunc func(s jobs.Schedule, tenant, account string) Timing
	read       map[Timing]*timing
}

func newTimetable(timingFunc func(s jobs.Schedule, tenant, account string) Timing) *timetable {
	return &timetable{timingFunc: timingFunc, read: map[Timing]*timing{}}
}

// entries calls visit for every schedule of every account of a snapshot, with the row of
// its slot, which is nil if the store has none. An entry without a timing never runs.
func (t *timetable) entries(snapshot jobs.ScheduleSnapshot, visit func(account jobs.Account, e *entry, row *jobs.Slot)) error {
	rows := make(map[key]*jobs.Slot, len(snapshot.Slots))
	for i := range snapshot.Slots {
		rows[key{snapshot.Slots[i].Schedule, snapshot.Slots[i].Account}] = &snapshot.Slots[i]
	}
	for _, account := range snapshot.Accounts {
		for _, schedule := range jobs.Schedules {
			timing, err := t.timing(schedule, account)
			if err != nil {
				return err
			}
			e := &entry{key: key{schedule, account.Email}, tenant: account.Tenant, timing: timing}
			if timing != nil {
				e.position = positionOf(schedule, account.Email)
			}
			visit(account, e, rows[e.key])
		}
	}
	return nil
}

// timing is that of a schedule and an account, or nil when there is none.
func (t *timetable) timing(schedule jobs.Schedule, account jobs.Account) (*timing, error) {
	want := t.timingFunc(schedule, account.Tenant, account.Email)
	if want.Spec == "" {
		return nil, nil
	}
	if read, ok := t.read[want]; ok {
		return read, nil
	}
	read, err := newTiming(want)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", schedule, account.Email, err)
	}
	t.read[want] = read
	return read, nil
}

// A position is where within an interval an account's runs are: two shares of it,
// from 0 to below 1. They are hashes, and so the same for every process and after
// every start, and unlike those of other accounts.
type position struct {
	offset float64 // of runs that are on time
	phase  float64 // of runs that catch up; another, so that the two do not pile up
}

func positionOf(s jobs.Schedule, account string) position {
	sum := sha256.Sum256([]byte(string(s) + "\x00" + account))
	return position{fraction(sum[0:8]), fraction(sum[8:16])}
}

func fraction(b []byte) float64 { return float64(binary.BigEndian.Uint64(b)>>11) / (1 << 53) }

// of is a share of an interval, in whole milliseconds.
func of(share float64, d time.Duration) time.Duration {
	return time.Duration(share * float64(d)).Truncate(time.Millisecond)
}

// nextPhase is the first moment after now that has its share of a window behind
// it, windows being counted from 1970. So it needs no memory: a process that
// starts again comes to the same moment, as does another one.
func nextPhase(now time.Time, window time.Duration, share float64) time.Time {
	begin := cronspec.Every(window).Next(now).Add(-window)
	at := begin.Add(of(share, window))
	if !at.After(now) {
		at = at.Add(window)
	}
	return at
}
