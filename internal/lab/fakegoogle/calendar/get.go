package calendar

import (
	"slices"
	"strings"
	"time"

	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

// getEvent serves calendar.events.get; of an event that was cancelled it gives
// the stub. The caller holds the lock.
func (c *Calendar) getEvent(id string, q page.Request) (any, *wire.Error) {
	zone, bad := c.answerZone(q)
	if bad != nil {
		return nil, bad
	}
	if e, ok := c.events[id]; ok {
		shown := e.Event
		if e.cancelled() {
			shown = e.stub()
		}
		return c.rendered(shown, zone), nil
	}
	if e, ok := c.occurrence(id); ok {
		return c.rendered(e, zone), nil
	}
	return nil, notFound()
}

func (c *Calendar) answerZone(q page.Request) (*time.Location, *wire.Error) {
	name := q.Get("timeZone")
	if name == "" {
		return c.zone, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, badRequest("invalid", "Invalid time zone: "+name, "timeZone")
	}
	return zone, nil
}

// listInstances serves calendar.events.instances: the occurrences of a series,
// those that were moved at their new times, in the order of their original ones.
// The caller holds the lock.
func (c *Calendar) listInstances(id string, q page.Request) (any, *wire.Error) {
	query := eventQuery{since: -1, single: true}
	var bad *wire.Error
	if query.showDeleted, bad = page.Bool(q.Values, "showDeleted"); bad != nil {
		return nil, bad
	}
	for name, t := range map[string]*time.Time{"timeMin": &query.timeMin, "timeMax": &query.timeMax} {
		if bad = timeParam(q, name, t); bad != nil {
			return nil, bad
		}
	}
	zone, bad := c.answerZone(q)
	if bad != nil {
		return nil, bad
	}
	master, ok := c.events[id]
	if !ok || master.cancelled() && !query.showDeleted {
		return nil, notFound()
	}
	p, bad := newPager(&c.tokens, c.account.email+" "+c.id+" instances "+id, c.rev, q, eventsPage, largestEvents)
	if bad != nil {
		return nil, bad
	}
	chosen := c.shownOccurrences(master, query)
	for _, e := range c.exceptions(id) {
		switch {
		case e.cancelled() && query.showDeleted:
			chosen = append(chosen, e.stub())
		case !e.cancelled() && c.within(&e.Event, query.timeMin, query.timeMax):
			chosen = append(chosen, e.Event)
		}
	}
	slices.SortFunc(chosen, func(a, b Event) int { return strings.Compare(a.ID, b.ID) })
	for i, e := range chosen {
		chosen[i] = c.rendered(e, zone)
	}
	items, next, _ := pageOf(p, numbered(chosen))
	answer := eventList{Items: items, NextPageToken: next}
	if q.Quirk.Page != fault.PageBare {
		c.head(&answer, zone)
	}
	return answer, nil
}
