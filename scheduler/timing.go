package scheduler

import (
	"fmt"
	"time"

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

// DefaultSpread bounds how long after its slot a run may be, unless the timing says
// otherwise: whoever names a time of day means it. An "@every" names none, and
// spreads over all of its interval.
const DefaultSpread = time.Hour

const (
	catchUpWindow = 10 * time.Minute // bound on how long runs that catch up are spread
	latePatience  = time.Minute      // a run that is later than this catches up
	countMost     = 10_000           // missed slots are counted up to here
	remembered    = 4096             // answers that a timing keeps
)

// A timing is a [Timing] that was read. All accounts share its slots, so it keeps
// what it has found. It is not safe for concurrent use.
type timing struct {
	Timing
	slots  slots
	always bool // an "@every"

	nexts  map[int64]time.Time
	floors map[int64]time.Time
	counts map[[2]int64]int64
}

func newTiming(t Timing) (*timing, error) {
	s, err := parseSpec(t.Spec, t.Zone)
	if err != nil {
		return nil, fmt.Errorf("schedule %q in zone %q: %w", t.Spec, t.Zone, err)
	}
	_, always := s.(every)
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

// recall returns what was found for a key, or finds it.
func recall[K comparable, V any](known map[K]V, key K, find func() V) V {
	if v, ok := known[key]; ok {
		return v
	}
	if len(known) >= remembered {
		clear(known)
	}
	v := find()
	known[key] = v
	return v
}

// next is the first slot after one, or after any moment.
func (t *timing) next(slot time.Time) time.Time {
	return recall(t.nexts, slot.UnixMilli(), func() time.Time { return t.slots.next(slot) })
}

// gap is how long after a slot the next one is.
func (t *timing) gap(slot time.Time) time.Duration {
	if next := t.next(slot); !next.IsZero() {
		return next.Sub(slot)
	}
	return DefaultSpread
}

// due is when a slot's run is due for an account: always before the next slot.
func (t *timing) due(slot time.Time, p place) time.Time {
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
	if e, ok := t.slots.(every); ok {
		return e.next(at).Add(-time.Duration(e))
	}
	return recall(t.floors, at.UnixMilli(), func() time.Time {
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
func (t *timing) lastDue(now time.Time, p place) time.Time {
	slot := t.floor(now)
	if !slot.IsZero() && t.due(slot, p).After(now) {
		slot = t.floor(slot.Add(-time.Millisecond))
	}
	return slot
}

// between counts the slots after one moment and before another, up to
// [countMost].
func (t *timing) between(after, before time.Time) int64 {
	return recall(t.counts, [2]int64{after.UnixMilli(), before.UnixMilli()}, func() (n int64) {
		for slot := t.next(after); n < countMost && !slot.IsZero() && slot.Before(before); slot = t.next(slot) {
			n++
		}
		return n
	})
}

// A Moment is when a slot's run comes.
type Moment struct {
	Slot   time.Time // in the zone of the specification
	Due    time.Time // of an account; of none in particular, the slot
	Spread time.Duration
}

// Coming lists when the runs of a schedule are due for an account after a moment,
// at most n of them; for none in particular if account is empty.
func Coming(t Timing, s jobs.Schedule, account string, after time.Time, n int) ([]Moment, error) {
	read, err := newTiming(t)
	if err != nil {
		return nil, err
	}
	zone, err := time.LoadLocation(t.Zone) // "" is UTC
	if err != nil {
		return nil, fmt.Errorf("zone of schedule %s: %w", s, err)
	}
	var p place
	if account != "" {
		p = placeOf(s, account)
	}
	slot := read.lastDue(after, p)
	if slot.IsZero() { // there was none yet
		slot = after
	}
	var all []Moment
	for slot = read.next(slot); len(all) < n && !slot.IsZero(); slot = read.next(slot) {
		all = append(all, Moment{slot.In(zone), read.due(slot, p).UTC(), read.width(slot)})
	}
	return all, nil
}
