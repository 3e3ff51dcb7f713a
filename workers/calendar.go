package workers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"headroom/jobs"
	"headroom/quota"
)

const (
	// calendarsAtOnce is how many calendars of one account are read side by side.
	calendarsAtOnce = 4
	// calendarFaults is how many calls in a row may fail, of whichever calendars,
	// before it is taken for an outage and not for the calendars' own trouble.
	calendarFaults = 5
)

// calendarRun is the part of a slice that reads calendars.
type calendarRun struct {
	*slice
	ctx, calls context.Context
	changes    Calendar // in the slice's lane, for what has changed
	whole      Calendar // in lane backfill, so that a first sync starves nobody
	halted     chan struct{}

	mu     sync.Mutex // guards these, and the slice's progress
	end    *ending    // the best reason to stop; nil: none yet
	faults int        // in a row
}

// syncCalendars brings the account's list of calendars into step and then each
// calendar, by itself: one that cannot be read is marked, and the others go on.
func (s *slice) syncCalendars(ctx, calls context.Context, account jobs.Account) ending {
	if s.opts.Calendars == nil || s.opts.CalendarStore == nil {
		return *breaks(errors.New("this worker does not sync calendars"))
	}
	r := &calendarRun{slice: s, ctx: ctx, calls: calls, halted: make(chan struct{})}
	for _, open := range []struct {
		lane quota.Lane
		to   *Calendar
	}{{s.lane, &r.changes}, {quota.Backfill, &r.whole}} {
		var err error
		if *open.to, err = s.opts.Calendars.Calendar(calls, account, open.lane, inPlace); err != nil {
			return *endingOfCall(ctx, calls, fmt.Errorf("open the calendars of %s: %w", account.Email, err), time.Now())
		}
	}
	r.access = newAccess(func(ctx context.Context) error {
		return r.changes.Calendars(ctx, "", "", func(jobs.CalendarListPage) error { return nil })
	})
	r.watch()
	list, err := s.opts.CalendarStore.BeginCalendars(ctx, s.ref)
	if err != nil {
		return *breaks(err)
	}
	if !list.Listed {
		if end := r.readList(list); end != nil {
			return *end
		}
		r.watch() // what is new on the list
	}
	for {
		all, err := s.opts.CalendarStore.RoundCalendars(ctx, s.ref)
		if err != nil {
			return *breaks(err)
		}
		if len(all) == 0 {
			break
		}
		if end := r.readAll(all); end != nil {
			return *end
		}
	}
	if _, err := s.opts.CalendarStore.EndCalendars(ctx, s.ref); err != nil {
		return *breaks(err)
	}
	return ending{how: ends, fin: jobs.Finish{State: jobs.Completed}}
}

// lane is where a stream's next call is made.
func (r *calendarRun) lane(s jobs.Stream) Calendar {
	if s.Whole() {
		return r.whole
	}
	return r.changes
}

// readList reads the list of calendars to its end. A list that must be left alone
// does not keep the calendars that are known waiting.
func (r *calendarRun) readList(list jobs.CalendarList) *ending {
	for !list.Listed && list.Stream.Due(time.Now()) {
		if r.stopping() {
			return &ending{how: goesOn}
		}
		token, page := list.Stream.Token(), list.Stream.PageToken
		var next jobs.CalendarList
		var failed error
		err := r.call(r.calls, nil, func(ctx context.Context) error {
			return r.changes.Calendars(ctx, token, page, func(p jobs.CalendarListPage) error {
				next, failed = r.opts.CalendarStore.ApplyCalendarList(r.ctx, r.ref, p)
				return failed
			})
		})
		class := classOfCall(err)
		switch {
		case failed != nil:
			return breaks(failed)
		case err == nil:
			r.progressed()
		case class == jobs.ClassCursor && page != "":
			next, failed = r.opts.CalendarStore.RestartCalendarList(r.ctx, r.ref)
		case class == jobs.ClassExpired, class == jobs.ClassCursor:
			r.log.Warn("the sync token of a list of calendars was refused; the list is read as a whole", logJob(r.job)...)
			next, failed = r.opts.CalendarStore.ExpireCalendarList(r.ctx, r.ref)
		default:
			return endingOfCall(r.ctx, r.calls, fmt.Errorf("list the calendars of %s: %w", r.job.Account, err), time.Now())
		}
		if failed != nil {
			return breaks(failed)
		}
		list = next
	}
	return nil
}

// readAll reads calendars in their order, a few at once, until all are done or
// something is a reason to stop for all of them.
func (r *calendarRun) readAll(all []jobs.Calendar) *ending {
	work := make(chan jobs.Calendar)
	var readers sync.WaitGroup
	for range min(calendarsAtOnce, len(all)) {
		readers.Go(func() {
			for c := range work {
				r.guard(c)
			}
		})
	}
feed:
	for _, c := range all {
		if r.stopping() {
			r.halt(ending{how: goesOn})
		}
		select {
		case <-r.halted:
			break feed
		case work <- c:
		}
	}
	close(work)
	readers.Wait()
	return r.end
}

// guard reads one calendar, and has a panic in it be the slice's failure.
func (r *calendarRun) guard(c jobs.Calendar) {
	defer func() {
		if err := r.recovered(recover()); err != nil {
			r.halt(*persists(err))
		}
	}()
	if end := r.read(c); end != nil {
		r.halt(*end)
	}
}

// halt has all readers stop after the page that they are at.
func (r *calendarRun) halt(e ending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.end == nil:
		r.end = &e
		close(r.halted)
	case e.outranks(*r.end):
		r.end = &e
	}
}

func (r *calendarRun) isHalted() bool {
	select {
	case <-r.halted:
		return true
	default:
		return r.stopping()
	}
}

// progressed notes that a page was read and written down.
func (r *calendarRun) progressed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress, r.faults = true, 0
}

// faulted notes a call that failed, and reports whether that is one too many.
func (r *calendarRun) faulted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults++
	return r.faults >= calendarFaults
}

// read reads a calendar page by page until it is in step, or in trouble of its
// own. It returns what is a reason to stop for all.
func (r *calendarRun) read(c jobs.Calendar) *ending {
	for {
		if r.isHalted() {
			return &ending{how: goesOn}
		}
		next, done, end := r.page(c)
		if end != nil || done || !next.Stream.NextTry.IsZero() {
			return end
		}
		c = next
	}
}

// page makes one call for a calendar and writes down what it brings.
func (r *calendarRun) page(c jobs.Calendar) (next jobs.Calendar, done bool, end *ending) {
	token, page := c.Stream.Token(), c.Stream.PageToken
	var failed error
	err := r.call(r.calls, r.halted, func(ctx context.Context) error {
		return r.lane(c.Stream).Events(ctx, c.ID, token, page, func(p jobs.EventPage) error {
			next, failed = r.opts.CalendarStore.ApplyEvents(r.ctx, r.ref, c.ID, p)
			if failed == nil {
				r.countEvents(p)
			}
			return failed
		})
	})
	switch {
	case failed != nil:
		return c, false, breaks(failed)
	case err != nil:
		return r.trouble(c, err)
	}
	r.progressed()
	if next.State != jobs.CalendarSynced || next.Stream.PageToken != "" || next.Stream.Pages > 0 {
		return next, false, nil
	}
	r.countPass(c)
	return next, true, nil
}

// trouble deals with a call for a calendar that failed.
func (r *calendarRun) trouble(c jobs.Calendar, err error) (next jobs.Calendar, done bool, end *ending) {
	if errors.Is(err, errNoTurn) {
		return c, false, &ending{how: goesOn}
	}
	err = fmt.Errorf("events of a calendar of %s: %w", r.job.Account, err)
	if r.ctx.Err() != nil || interrupted(r.calls) {
		return c, false, endingOfCall(r.ctx, r.calls, err, time.Now())
	}
	if end := r.endingOfItem(r.ctx, r.calls, err); end != nil {
		return c, false, end
	}
	store, reason, class := r.opts.CalendarStore, clip(err.Error()), classOfCall(err)
	state := jobs.CalendarFailing
	var failed error
	switch {
	case class == jobs.ClassCursor && c.Stream.PageToken != "":
		next, failed = store.RestartCalendar(r.ctx, r.ref, c.ID, reason)
	case class == jobs.ClassExpired, class == jobs.ClassCursor:
		state = jobs.CalendarExpired
		r.log.Warn("the sync token of a calendar was refused; the calendar is read as a whole", logJob(r.job)...)
		next, failed = store.ExpireCalendar(r.ctx, r.ref, c.ID, reason)
	case class == jobs.ClassGone, class == jobs.ClassForbidden, blames(err):
		state = jobs.CalendarForbidden
		if class == jobs.ClassGone {
			state = jobs.CalendarMissing
		}
		done = true
		next, failed = store.MarkCalendar(r.ctx, r.ref, c.ID, state, reason)
	case r.faulted():
		return c, false, breaks(err)
	default:
		done = true
		next, failed = store.MarkCalendar(r.ctx, r.ref, c.ID, state, reason)
	}
	if failed != nil {
		return c, false, breaks(failed)
	}
	r.metrics.troubles.WithLabelValues(string(state)).Inc()
	if done || !next.Stream.NextTry.IsZero() {
		r.log.Info("a calendar is left alone for now", append(logJob(r.job), zap.String("state", string(next.State)),
			zap.Time("until", next.Stream.NextTry))...)
	}
	return next, done, nil
}

func (r *calendarRun) countEvents(p jobs.EventPage) {
	var cancelled float64
	for _, e := range p.Events {
		if e.Cancelled() {
			cancelled++
		}
	}
	r.metrics.events.WithLabelValues("live").Add(float64(len(p.Events)) - cancelled)
	r.metrics.events.WithLabelValues("cancelled").Add(cancelled)
}

func (r *calendarRun) countPass(c jobs.Calendar) {
	pass := "changes"
	if c.Stream.Whole() {
		pass = string(c.Stream.Pass)
		r.log.Info("a calendar was read as a whole", append(logJob(r.job), zap.String("pass", pass))...)
	}
	r.metrics.passes.WithLabelValues(pass).Inc()
}

// classOfCall is what a call's error means for the work; "" if it is none of
// Google's.
func classOfCall(err error) jobs.Class {
	if call, ok := errors.AsType[*jobs.CallError](err); ok {
		return call.Class
	}
	return ""
}
