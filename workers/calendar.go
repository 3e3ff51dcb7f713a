package workers

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/zap"

	"headroom/jobs"
	"headroom/quota"
)

const (
	// calendarsAtOnce is how many calendars of one account are read side by side.
	calendarsAtOnce = 4
	// calendarFaults is how many calls in a row may fail, of whichever calendars,
	// before that counts as an outage and not as the calendars' own fault.
	calendarFaults = 5
)

// A calendarRun brings the account's list of calendars into step and then each calendar
// by itself: one that cannot be read is marked, and the others continue.
type calendarRun struct {
	*slice
	*stopper
	access  *access  // of the account, which answers about single calendars may blame
	changes Calendar // in the slice's lane, for what has changed
	whole   Calendar // in lane backfill, so that a first sync starves nobody

	mu         sync.Mutex // guards these
	progressed bool       // something was read and written down
	faults     int        // in a row
}

func newCalendarRun(s *slice) *calendarRun { return &calendarRun{slice: s, stopper: newStopper()} }

func (c *calendarRun) run(ctx context.Context) result {
	if c.opts.Calendars == nil || c.opts.CalendarStore == nil {
		return failed(errors.New("this worker does not sync calendars"))
	}
	if r := c.open(ctx); r.stops() {
		return r
	}
	r := c.sync(ctx)
	c.progress = c.progress || c.progressed // all readers have ended
	return r
}

// open opens the calendars in both lanes.
func (c *calendarRun) open(ctx context.Context) result {
	err := c.call(nil, func(ctx context.Context) (err error) {
		if c.changes, err = c.opts.Calendars.Calendar(ctx, c.account, c.lane, inPlace); err != nil {
			return err
		}
		c.whole, err = c.opts.Calendars.Calendar(ctx, c.account, quota.Backfill, inPlace)
		return err
	})
	if err != nil {
		return c.resultOfCall(ctx, fmt.Errorf("open the calendars of %s: %w", c.account.Email, err))
	}
	c.access = newAccess(func(ctx context.Context) error {
		return c.changes.Calendars(ctx, "", "", func(jobs.CalendarListPage) error { return nil })
	})
	return result{}
}

func (c *calendarRun) sync(ctx context.Context) result {
	c.renewChannels(ctx)
	list, err := c.opts.CalendarStore.BeginCalendars(ctx, c.ref)
	if err != nil {
		return failed(err)
	}
	if !list.Listed {
		if r := c.readList(ctx, list); r.stops() {
			return r
		}
		c.renewChannels(ctx) // of what is new on the list
	}
	for {
		all, err := c.opts.CalendarStore.RoundCalendars(ctx, c.ref)
		if err != nil {
			return failed(err)
		}
		if len(all) == 0 {
			break
		}
		if r := c.readAll(ctx, all); r.stops() {
			return r
		}
	}
	if _, err := c.opts.CalendarStore.EndCalendars(ctx, c.ref); err != nil {
		return failed(err)
	}
	return endsAs(jobs.Completed, "")
}

// readList reads the list of calendars to its end. A list that must be left alone
// does not keep the calendars that are known waiting.
func (c *calendarRun) readList(ctx context.Context, list jobs.CalendarList) result {
	for !list.Listed && list.Stream.Due(c.now()) {
		if c.stopping() {
			return result{reason: timeUp}
		}
		token, page := list.Stream.Token(), list.Stream.PageToken
		var next jobs.CalendarList
		err := c.call(nil, func(call context.Context) error {
			return c.changes.Calendars(call, token, page, func(p jobs.CalendarListPage) (err error) {
				next, err = c.opts.CalendarStore.ApplyCalendarList(ctx, c.ref, p)
				return storeFailed(err)
			})
		})
		var storeErr error
		switch class := classOf(err); {
		case isStoreError(err):
			return failed(err)
		case err == nil:
			c.pageRead()
		case class == jobs.ClassCursor && page != "":
			next, storeErr = c.opts.CalendarStore.RestartCalendarList(ctx, c.ref)
		case class == jobs.ClassExpired, class == jobs.ClassCursor:
			c.log.Warn("the sync token of a list of calendars was refused; the list is read as a whole", c.logJob()...)
			next, storeErr = c.opts.CalendarStore.ExpireCalendarList(ctx, c.ref)
		default:
			return c.resultOfCall(ctx, fmt.Errorf("list the calendars of %s: %w", c.job.Account, err))
		}
		if storeErr != nil {
			return failed(storeErr)
		}
		list = next
	}
	return result{}
}

// readAll reads calendars in their order, a few at once, until all are done or
// something is a reason to stop for all of them.
func (c *calendarRun) readAll(ctx context.Context, all []jobs.Calendar) result {
	work := make(chan jobs.Calendar)
	var readers sync.WaitGroup
	for range min(calendarsAtOnce, len(all)) {
		readers.Go(func() {
			for one := range work {
				c.guard(ctx, one)
			}
		})
	}
feed:
	for _, one := range all {
		if c.stopping() {
			c.stopper.stop(result{reason: timeUp})
		}
		select {
		case <-c.done:
			break feed
		case work <- one:
		}
	}
	close(work)
	readers.Wait()
	return c.result()
}

// guard reads one calendar, and has a panic in it be the slice's failure.
func (c *calendarRun) guard(ctx context.Context, one jobs.Calendar) {
	defer func() {
		if err := c.recovered(recover()); err != nil {
			c.stopper.stop(failedForGood(err))
		}
	}()
	if r := c.read(ctx, one); r.stops() {
		c.stopper.stop(r)
	}
}

// pageRead notes that a page was read and written down.
func (c *calendarRun) pageRead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progressed, c.faults = true, 0
}

// oneTooMany counts a call that failed, and reports whether that is one too many.
func (c *calendarRun) oneTooMany() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults++
	return c.faults >= calendarFaults
}

// read reads a calendar page by page until it is in step, or cannot be read for a
// reason of its own. It returns what is a reason to stop for all.
func (c *calendarRun) read(ctx context.Context, one jobs.Calendar) result {
	for {
		if c.stopped() || c.stopping() {
			return result{reason: timeUp}
		}
		next, done, r := c.readPage(ctx, one)
		if r.stops() || done || !next.Stream.NextTry.IsZero() {
			return r
		}
		one = next
	}
}

// readPage makes one call for a calendar and writes down what it brings.
func (c *calendarRun) readPage(ctx context.Context, one jobs.Calendar) (next jobs.Calendar, done bool, r result) {
	token, page, in := one.Stream.Token(), one.Stream.PageToken, c.changes
	if one.Stream.Whole() {
		in = c.whole
	}
	err := c.call(c.done, func(call context.Context) error {
		return in.Events(call, one.ID, token, page, func(p jobs.EventPage) (err error) {
			if next, err = c.opts.CalendarStore.ApplyEvents(ctx, c.ref, one.ID, p); err == nil {
				c.countEvents(p)
			}
			return storeFailed(err)
		})
	})
	switch {
	case isStoreError(err):
		return one, false, failed(err)
	case err != nil:
		return c.markFailed(ctx, one, err)
	}
	c.pageRead()
	if next.State != jobs.CalendarSynced || next.Stream.PageToken != "" || next.Stream.Pages > 0 {
		return next, false, result{}
	}
	c.countPass(one)
	return next, true, result{}
}

// markFailed deals with a call for a calendar that failed.
func (c *calendarRun) markFailed(ctx context.Context, one jobs.Calendar, err error) (next jobs.Calendar, done bool, r result) {
	if errors.Is(err, errNoTurn) {
		return one, false, result{reason: timeUp}
	}
	err = fmt.Errorf("events of a calendar of %s: %w", c.job.Account, err)
	if ctx.Err() != nil || c.calls.interrupted() {
		return one, false, c.resultOfCall(ctx, err)
	}
	if r := c.access.resultOf(ctx, c.slice, err); r.stops() {
		return one, false, r
	}
	store, reason, class := c.opts.CalendarStore, clip(err.Error()), classOf(err)
	state := jobs.CalendarFailing
	var storeErr error
	switch {
	case class == jobs.ClassCursor && one.Stream.PageToken != "":
		next, storeErr = store.RestartCalendar(ctx, c.ref, one.ID, reason)
	case class == jobs.ClassExpired, class == jobs.ClassCursor:
		state = jobs.CalendarExpired
		c.log.Warn("the sync token of a calendar was refused; the calendar is read as a whole", c.logJob()...)
		next, storeErr = store.ExpireCalendar(ctx, c.ref, one.ID, reason)
	case class == jobs.ClassGone, class == jobs.ClassForbidden, blames(err):
		state = jobs.CalendarForbidden
		if class == jobs.ClassGone {
			state = jobs.CalendarMissing
		}
		done = true
		next, storeErr = store.MarkCalendar(ctx, c.ref, one.ID, state, reason)
	case c.oneTooMany():
		return one, false, failed(err)
	default:
		done = true
		next, storeErr = store.MarkCalendar(ctx, c.ref, one.ID, state, reason)
	}
	if storeErr != nil {
		return one, false, failed(storeErr)
	}
	c.metrics.troubles.WithLabelValues(string(state)).Inc()
	if done || !next.Stream.NextTry.IsZero() {
		c.log.Info("a calendar is left alone for now", c.logJob(zap.String("state", string(next.State)),
			zap.Time("until", next.Stream.NextTry))...)
	}
	return next, done, result{}
}

func (c *calendarRun) countEvents(p jobs.EventPage) {
	var cancelled float64
	for _, e := range p.Events {
		if e.Cancelled() {
			cancelled++
		}
	}
	c.metrics.events.WithLabelValues("live").Add(float64(len(p.Events)) - cancelled)
	c.metrics.events.WithLabelValues("cancelled").Add(cancelled)
}

func (c *calendarRun) countPass(one jobs.Calendar) {
	pass := "changes"
	if one.Stream.Whole() {
		pass = string(one.Stream.Pass)
		c.log.Info("a calendar was read as a whole", c.logJob(zap.String("pass", pass))...)
	}
	c.metrics.passes.WithLabelValues(pass).Inc()
}
