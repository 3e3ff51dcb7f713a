package agenda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/teambition/rrule-go"
)

// times yields moments in order.
type times func() (time.Time, bool)

// A walk iterates over the occurrences of one series.
type walk struct {
	ctx      context.Context
	steps    int
	problems []error
}

func newWalk(ctx context.Context) *walk { return &walk{ctx: ctx} }

// note records what could not be read, once.
func (w *walk) note(err error) {
	if !slices.ContainsFunc(w.problems, func(known error) bool { return known.Error() == err.Error() }) {
		w.problems = append(w.problems, err)
	}
}

// err returns what could not be read.
func (w *walk) err() error { return errors.Join(w.problems...) }

// ended reports, from time to time, whether the walk's context has ended.
func (w *walk) ended() bool {
	w.steps++
	return w.steps%256 == 1 && w.ctx.Err() != nil
}

// stopping yields moments until the walk's context ends.
func (w *walk) stopping(next times) times {
	return func() (time.Time, bool) {
		if w.ended() {
			return time.Time{}, false
		}
		return next()
	}
}

// rule yields what the library makes of a rule. Rules come from strangers, and some
// make the library panic.
func (w *walk) rule(text string, option *rrule.ROption) (next times, err error) {
	guard := func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("rule %q: %v", text, r)
		}
	}
	defer guard()
	if option.Until.Before(option.Dtstart) {
		return func() (time.Time, bool) { return time.Time{}, false }, nil
	}
	rule, err := rrule.NewRRule(*option)
	if err != nil {
		return nil, fmt.Errorf("rule %q: %w", text, err)
	}
	iterate := rule.Iterator()
	return w.stopping(func() (at time.Time, ok bool) {
		defer func() {
			if r := recover(); r != nil {
				w.note(fmt.Errorf("rule %q: %v", text, r))
				at, ok = time.Time{}, false
			}
		}()
		return iterate()
	}), nil
}

// listed yields a list, from a time on the wall clock on.
func listed(from time.Time, all ...time.Time) times {
	all = slices.DeleteFunc(slices.Clone(all), func(t time.Time) bool { return onWall(t).Before(from) })
	slices.SortFunc(all, time.Time.Compare)
	return func() (at time.Time, ok bool) {
		if len(all) == 0 {
			return at, false
		}
		at, all = all[0], all[1:]
		return at, true
	}
}

// mapped changes each moment.
func mapped(next times, change func(time.Time) time.Time) times {
	return func() (time.Time, bool) {
		at, ok := next()
		if !ok {
			return at, false
		}
		return change(at), true
	}
}

// eachOnce leaves out repeated moments.
func eachOnce(next times) times {
	var last time.Time
	began := false
	return func() (time.Time, bool) {
		for {
			at, ok := next()
			if !ok || !began || !at.Equal(last) {
				last, began = at, true
				return at, ok
			}
		}
	}
}

// inOrder converts times on the wall clock of a zone to moments in order. A time that
// the clocks skip comes after others that they show later.
func inOrder(walls times, zone *time.Location) times {
	var waiting []time.Time // in order
	var shown time.Time     // the last
	done := false
	return eachOnce(func() (at time.Time, ok bool) {
		for {
			if len(waiting) > 0 && (done || !onWall(waiting[0]).After(shown)) {
				at, waiting = waiting[0], waiting[1:]
				return at, true
			}
			if done {
				return at, false
			}
			if shown, ok = walls(); !ok {
				done = true
				continue
			}
			at = instant(shown, zone).In(zone)
			i, _ := slices.BinarySearchFunc(waiting, at, time.Time.Compare)
			waiting = slices.Insert(waiting, i, at)
		}
	})
}

// A peeked iterator knows its next moment.
type peeked struct {
	next times
	at   time.Time
	ok   bool
}

func (p *peeked) advance() { p.at, p.ok = p.next() }

// merged merges several iterators, and yields each moment once.
func merged(all ...times) times {
	var heads []*peeked
	return eachOnce(func() (at time.Time, ok bool) {
		if heads == nil {
			for _, next := range all {
				p := &peeked{next: next}
				p.advance()
				heads = append(heads, p)
			}
		}
		var first *peeked
		for _, p := range heads {
			if p.ok && (first == nil || p.at.Before(first.at)) {
				first = p
			}
		}
		if first == nil {
			return at, false
		}
		at = first.at
		first.advance()
		return at, true
	})
}

// less yields the moments of one iterator that are not in another.
func less(next, without times) times {
	var out peeked
	return func() (time.Time, bool) {
		if out.next == nil {
			out.next = without
			out.advance()
		}
		for {
			at, ok := next()
			for ok && out.ok && out.at.Before(at) {
				out.advance()
			}
			if !ok || !out.ok || !out.at.Equal(at) {
				return at, ok
			}
		}
	}
}
