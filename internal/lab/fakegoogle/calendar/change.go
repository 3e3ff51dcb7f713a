package calendar

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// ErrNoEvent reports that a calendar has no event of an id.
var ErrNoEvent = errors.New("no such event")

// Add puts an event into the calendar and returns it as it is stored. What it
// lacks is made up: an id that depends on the calendar and on how many events
// were added before, a UID, an organizer. It needs a start and an end.
func (c *Calendar) Add(e Event) (Event, error) {
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	return c.add(e)
}

func (c *Calendar) add(e Event) (Event, error) {
	if err := c.normalize(&e); err != nil {
		return Event{}, fmt.Errorf("add an event to %s: %w", c.id, err)
	}
	if old, ok := c.events[e.ID]; ok && !old.cancelled() {
		return Event{}, fmt.Errorf("add event %s to %s: it is there", e.ID, c.id)
	}
	return c.put(e).Event, nil
}

// normalize fills in what every event has. The caller holds the lock.
func (c *Calendar) normalize(e *Event) error {
	if err := c.normalizeTimes(e); err != nil {
		return err
	}
	self := &EventPerson{Email: c.account.email, Self: true}
	e.ID = cmp.Or(e.ID, madeID(c.account.email, c.id, fmt.Sprint(c.made+1)))
	e.Status = cmp.Or(e.Status, EventConfirmed)
	e.ICalUID = cmp.Or(e.ICalUID, e.ID+"@google.com")
	e.EventType = cmp.Or(e.EventType, "default")
	e.Created = cmp.Or(e.Created, time.Now().UTC().Format(stampLayout))
	e.Creator, e.Organizer = cmp.Or(e.Creator, self), cmp.Or(e.Organizer, self)
	e.Reminders = cmp.Or(e.Reminders, &EventReminders{UseDefault: true})
	return nil
}

// normalizeTimes writes an event's times in the calendar's zone, and gives each
// moment a zone to be kept in.
func (c *Calendar) normalizeTimes(e *Event) error {
	for name, t := range map[string]**EventTime{"start": &e.Start, "end": &e.End, "original start": &e.OriginalStartTime} {
		if *t == nil && name == "original start" {
			continue
		}
		at, err := (*t).moment(c.zone)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if (*t).Date != "" {
			*t = &EventTime{Date: (*t).Date}
			continue
		}
		*t = &EventTime{DateTime: rfc3339(at.In(c.zone)), TimeZone: cmp.Or((*t).TimeZone, c.zone.String())}
	}
	return nil
}

// Update changes an event, or makes an exception of an occurrence that is named
// by its id (see [Calendar.OccurrenceID]). change gets a copy whose id and series
// stay what they are.
func (c *Calendar) Update(id string, change func(*Event)) (Event, error) {
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	return c.update(id, change)
}

func (c *Calendar) update(id string, change func(*Event)) (Event, error) {
	old, err := c.current(id)
	if err != nil {
		return Event{}, err
	}
	e := old
	change(&e)
	e.ID, e.RecurringEventID, e.OriginalStartTime = old.ID, old.RecurringEventID, old.OriginalStartTime
	e.Sequence = old.Sequence + 1
	if err := c.normalizeTimes(&e); err != nil {
		return Event{}, fmt.Errorf("change event %s of %s: %w", id, c.id, err)
	}
	return c.put(e).Event, nil
}

// current returns an event that is not cancelled, stored or an occurrence of a
// series that is. The caller holds the lock.
func (c *Calendar) current(id string) (Event, error) {
	if e, ok := c.events[id]; ok {
		if e.cancelled() {
			return Event{}, fmt.Errorf("event %s of %s: %w: it is cancelled", id, c.id, ErrNoEvent)
		}
		current := e.Event
		current.raw = nil // what is made of it is the fake's
		return current, nil
	}
	if e, ok := c.occurrence(id); ok {
		return e, nil
	}
	return Event{}, fmt.Errorf("event %s of %s: %w", id, c.id, ErrNoEvent)
}

// Move lets an event, or an occurrence of a series, begin at another time and
// last as long as it did.
func (c *Calendar) Move(id string, start EventTime) (Event, error) {
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	from, err := start.moment(c.zone)
	if err != nil {
		return Event{}, fmt.Errorf("move event %s of %s: %w", id, c.id, err)
	}
	old, err := c.current(id)
	if err != nil {
		return Event{}, err
	}
	length, err := c.length(old)
	if err != nil {
		return Event{}, fmt.Errorf("move event %s of %s: %w", id, c.id, err)
	}
	return c.update(id, func(e *Event) {
		if start.Date == "" {
			start.TimeZone = cmp.Or(start.TimeZone, old.Start.TimeZone)
		}
		e.Start, e.End = &start, start.like(length.after(from), c.zone)
	})
}

// Cancel takes an event out of the calendar, or lets an occurrence of a series
// not take place. A stub stays.
func (c *Calendar) Cancel(id string) error {
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	return c.cancel(id)
}

func (c *Calendar) cancel(id string) error {
	e, err := c.current(id)
	if err != nil {
		return err
	}
	e.Status = EventCancelled
	c.put(e)
	return nil
}

// Delete takes an event out of the calendar, a series with all its exceptions,
// each of which becomes a stub of its own.
func (c *Calendar) Delete(id string) error { return c.deleteSeries(id, true) }

// DeleteSeries is Delete, but only the series itself shows as changed: its exceptions
// go without a word.
func (c *Calendar) DeleteSeries(id string) error { return c.deleteSeries(id, false) }

func (c *Calendar) deleteSeries(id string, tell bool) error {
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	return c.removeSeries(id, tell)
}

func (c *Calendar) removeSeries(id string, tell bool) error {
	if err := c.cancel(id); err != nil {
		return err
	}
	for _, e := range c.exceptions(id) {
		if tell && !e.cancelled() {
			e.Status = EventCancelled
			c.put(e.Event)
		} else if !tell {
			silent := *e
			silent.Status = EventCancelled
			c.replace(&silent)
		}
	}
	return nil
}

// replace stores an event without telling anybody that it changed.
func (c *Calendar) replace(e *storedEvent) {
	i, _ := slices.BinarySearchFunc(c.order, e.seq, func(e *storedEvent, seq int64) int { return cmp.Compare(e.seq, seq) })
	c.order[i], c.events[e.ID] = e, e
}

// exceptions returns copies of a series' exceptions. The caller holds the lock.
func (c *Calendar) exceptions(series string) []*storedEvent {
	var all []*storedEvent
	for _, e := range c.order {
		if e.RecurringEventID == series {
			copied := *e
			all = append(all, &copied)
		}
	}
	return all
}

// ExpireTokens makes every sync token of the calendar that is out worthless:
// 410 fullSyncRequired. always makes those of the future worthless too, until
// ExpireTokens is called again without it.
func (c *Calendar) ExpireTokens(always bool) {
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	c.tokens.syncs++
	c.tokens.expired = always
}

// ExpirePageTokens makes every page token of the calendar that is out worthless.
func (c *Calendar) ExpirePageTokens() {
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	c.tokens.pages.Generation++
}

// ForgetChanges lets updatedMin not reach back before now: 410
// updatedMinTooLongAgo.
func (c *Calendar) ForgetChanges() {
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	c.updatedFloor = time.Now()
}

// SetAccess changes what the account may do with the calendar. Sync tokens that
// are out die with it, as they do when an access list changes.
func (c *Calendar) SetAccess(access string) error {
	if !slices.Contains(accesses, access) {
		return fmt.Errorf("set access to %s: %q is none of %s", c.id, access, strings.Join(accesses, ", "))
	}
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	c.access, c.deleted = access, access == AccessNone
	c.tokens.syncs++
	c.relist()
	return nil
}

// Hide takes the calendar out of what the list shows by default, or puts it back.
func (c *Calendar) Hide(hidden bool) {
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	c.hidden = hidden
	c.relist()
}

// A span of an event: days where it has dates, so that it does not change with
// the clocks.
type eventLength struct {
	days int
	time time.Duration
}

func (l eventLength) after(t time.Time) time.Time { return t.AddDate(0, 0, l.days).Add(l.time) }

// length is how long an event lasts.
func (c *Calendar) length(e Event) (eventLength, error) {
	zone := c.zone
	if e.Start != nil && e.Start.Date != "" {
		zone = time.UTC // where every day is as long as the next
	}
	start, err := e.Start.moment(zone)
	if err != nil {
		return eventLength{}, err
	}
	end, err := e.End.moment(zone)
	if err != nil {
		return eventLength{}, err
	}
	if e.Start.Date != "" {
		return eventLength{days: int(end.Sub(start) / (24 * time.Hour))}, nil
	}
	return eventLength{time: end.Sub(start)}, nil
}

// occurrenceName takes the id of an occurrence apart.
var occurrenceName = regexp.MustCompile(`^(.+)_(\d{8})(T\d{6}Z)?$`)
