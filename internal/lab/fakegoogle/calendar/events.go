package calendar

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

const (
	eventsPage    = 250
	largestEvents = 2500
)

type eventList struct {
	Kind             string          `json:"kind,omitempty"`
	Etag             string          `json:"etag,omitempty"`
	Summary          string          `json:"summary,omitempty"`
	Updated          string          `json:"updated,omitempty"`
	TimeZone         string          `json:"timeZone,omitempty"`
	AccessRole       string          `json:"accessRole,omitempty"`
	DefaultReminders []EventReminder `json:"defaultReminders,omitzero"` // present where there are none, as items are
	NextPageToken    string          `json:"nextPageToken,omitempty"`
	NextSyncToken    string          `json:"nextSyncToken,omitempty"`
	Items            []Event         `json:"items,omitzero"`
}

// An eventQuery is what the parameters of events.list choose.
type eventQuery struct {
	since       int64 // the revision that a sync token knows; -1 without one
	single      bool
	showDeleted bool
	zone        *time.Location // of the answer
	timeMin     time.Time
	timeMax     time.Time
	updatedMin  time.Time
	orderBy     string
	uid         string
	words       string
	types       []string
	private     []string // properties, each NAME=VALUE
	shared      []string
	token       syncToken
	givesToken  bool
}

// noTokenParams make a list that no sync token goes with, and must not come with
// one; the bounds of time may stand in the first list but not with its token.
var (
	noTokenParams = []string{"iCalUID", "orderBy", "privateExtendedProperty", "q", "sharedExtendedProperty", "updatedMin"}
	boundParams   = []string{"timeMin", "timeMax"}
)

// query reads the parameters of events.list. The caller holds the lock.
func (c *Calendar) query(q page.Request) (eventQuery, *wire.Error) {
	query := eventQuery{
		since: -1, zone: c.zone, orderBy: q.Get("orderBy"), uid: q.Get("iCalUID"),
		words: strings.ToLower(q.Get("q")), types: q.Values["eventTypes"],
		private: q.Values["privateExtendedProperty"], shared: q.Values["sharedExtendedProperty"],
	}
	var bad *wire.Error
	if query.single, bad = page.Bool(q.Values, "singleEvents"); bad != nil {
		return query, bad
	}
	if query.showDeleted, bad = page.Bool(q.Values, "showDeleted"); bad != nil {
		return query, bad
	}
	for name, t := range map[string]*time.Time{"timeMin": &query.timeMin, "timeMax": &query.timeMax, "updatedMin": &query.updatedMin} {
		if bad = timeParam(q, name, t); bad != nil {
			return query, bad
		}
	}
	if name := q.Get("timeZone"); name != "" {
		zone, err := time.LoadLocation(name)
		if err != nil {
			return query, badRequest("invalid", "Invalid time zone: "+name, "timeZone")
		}
		query.zone = zone
	}
	bad = c.querySync(q, &query)
	return query, cmp.Or(bad, query.validate())
}

// querySync reads the sync token, if there is one, and prepares the next.
func (c *Calendar) querySync(q page.Request, query *eventQuery) *wire.Error {
	query.token = syncToken{list: page.Bind(nil, c.account.email, c.id), generation: c.tokens.syncs}
	query.token.binding = page.Bind(without(q.Values, slices.Concat(noTokenParams, boundParams, []string{"syncToken", "maxResults", "showDeleted"})...))
	query.givesToken = !slices.ContainsFunc(noTokenParams, q.Has)
	text := q.Get("syncToken")
	if text == "" {
		return nil
	}
	bad := cmp.Or(forbidParams(q, slices.Concat(noTokenParams, boundParams)...), forbidFalse(q, "showDeleted"))
	if bad == nil {
		query.since, bad = takeSyncToken(text, query.token, &c.tokens)
	}
	query.showDeleted = true
	return bad
}

func (query eventQuery) validate() *wire.Error {
	switch {
	case !query.timeMin.IsZero() && !query.timeMax.IsZero() && !query.timeMin.Before(query.timeMax):
		e := badRequest("timeRangeEmpty", "The specified time range is empty.", "timeMax")
		e.Errors[0].Domain = "calendar"
		return e
	case !slices.Contains([]string{"", "startTime", "updated"}, query.orderBy):
		return badRequest("invalidParameter", "Invalid value for: "+query.orderBy+" is not a valid value", "orderBy")
	case query.orderBy == "startTime" && !query.single:
		return badRequest("badRequest", "The requested ordering is not available for the particular query.", "orderBy")
	}
	return nil
}

// timeParam reads a moment, which must name its offset.
func timeParam(q page.Request, name string, t *time.Time) *wire.Error {
	text := q.Get(name)
	if text == "" {
		return nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return badRequest("badRequest", "Bad Request", name)
	}
	*t = at
	return nil
}

// listEvents serves calendar.events.list. The caller holds the lock.
func (c *Calendar) listEvents(q page.Request) (any, *wire.Error) {
	query, bad := c.query(q)
	if bad != nil {
		return nil, bad
	}
	if !query.updatedMin.IsZero() && query.updatedMin.Before(c.updatedFloor) {
		return nil, gone("updatedMinTooLongAgo")
	}
	p, bad := newPager(&c.tokens, c.account.email+" "+c.id+" events", c.rev, q, eventsPage, largestEvents)
	if bad != nil {
		return nil, bad
	}
	items, next, last := pageOf(p, c.choose(query))
	for i := range items {
		items[i] = c.rendered(items[i], query.zone)
	}
	answer := eventList{Items: items, NextPageToken: next}
	if q.Quirk.Page != fault.PageBare {
		c.head(&answer, query.zone)
	}
	if last && query.givesToken {
		query.token.rev = p.AsOf
		answer.NextSyncToken = query.token.encode()
	}
	return answer, nil
}

// head fills in the fields of an answer that describe the calendar itself.
func (c *Calendar) head(l *eventList, zone *time.Location) {
	if l.Items == nil {
		l.Items = []Event{}
	}
	l.Kind, l.Summary, l.TimeZone, l.AccessRole = "calendar#events", c.summary, zone.String(), c.role()
	l.Updated, l.Etag = c.changed.UTC().Format(stampLayout), c.listEtag()
	l.DefaultReminders = []EventReminder{}
}

// choose returns the events that a query asks for, in the order of the list: as
// they were made, or with a sync token as they changed.
func (c *Calendar) choose(query eventQuery) []placed[Event] {
	var all []placed[Event]
	for _, e := range c.order {
		if e.rev <= query.since {
			continue
		}
		position := e.seq
		if query.since >= 0 {
			position = e.rev
		}
		for i, shown := range c.shown(e, query) {
			all = append(all, placed[Event]{page.Place{Position: position, Within: uint32(i)}, shown})
		}
	}
	switch query.orderBy {
	case "":
		slices.SortFunc(all, func(a, b placed[Event]) int { return order(a.Place, b.Place) })
		return all
	case "updated":
		slices.SortStableFunc(all, func(a, b placed[Event]) int { return strings.Compare(a.item.Updated, b.item.Updated) })
	case "startTime":
		starts := map[string]time.Time{}
		for _, e := range all {
			starts[e.item.ID], _ = e.item.Start.moment(c.zone)
		}
		slices.SortStableFunc(all, func(a, b placed[Event]) int { return starts[a.item.ID].Compare(starts[b.item.ID]) })
	}
	for i := range all {
		all[i].Place = page.Place{Position: int64(i) + 1}
	}
	return all
}

// shown is what a query returns of a stored event: nothing, itself, what is left
// of it, or the occurrences of its series.
func (c *Calendar) shown(e *storedEvent, query eventQuery) []Event {
	if e.updated.Before(query.updatedMin) || !query.about(&e.Event) {
		return nil
	}
	if query.single && e.master() {
		return c.shownOccurrences(e, query)
	}
	if e.cancelled() {
		// An occurrence that does not take place is part of its series.
		partOfSeries := e.exception() && !query.single && c.alive(e.RecurringEventID)
		if query.showDeleted || partOfSeries || !query.updatedMin.IsZero() {
			return []Event{e.stub()}
		}
		return nil
	}
	if query.since < 0 && !c.overlaps(&e.Event, query.timeMin, query.timeMax) {
		return nil
	}
	return []Event{e.Event}
}

func (c *Calendar) alive(id string) bool {
	e, ok := c.events[id]
	return ok && !e.cancelled()
}

// about reports whether an event has what a query looks for in it.
func (query eventQuery) about(e *Event) bool {
	if query.uid != "" && e.ICalUID != query.uid || len(query.types) > 0 && !slices.Contains(query.types, e.EventType) {
		return false
	}
	if !e.ExtendedProperties.have(query.private, query.shared) {
		return false
	}
	text := strings.ToLower(strings.Join([]string{e.Summary, e.Description, e.Location}, "\n"))
	for word := range strings.FieldsSeq(query.words) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}
