package calendar

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"headroom/internal/lab/fakegoogle/page"
)

// An Account is the calendars of one account and the list that names them. Its lock
// guards all of them.
type Account struct {
	email string

	mu        sync.Mutex
	calendars []*Calendar // in the order of the list
	rev       int64       // of the list
	tokens    tokenState  // of the list
	channels  *Channels
}

// A tokenState decides which tokens of a list are accepted.
type tokenState struct {
	syncs   uint32      // generation of sync tokens; older ones are 410
	pages   page.Tokens // others than its are 400
	expired bool        // sync tokens are 410 as soon as they are out
}

// A Calendar is one calendar of an account. It is safe for concurrent use, also
// while the server serves it, and notifies its channels of every change.
type Calendar struct {
	account *Account
	id      string
	summary string
	zone    *time.Location
	primary bool

	access  string // one of the Access constants
	hidden  bool
	deleted bool  // from the list
	listRev int64 // of the list when the calendar's entry last changed

	events       map[string]*storedEvent
	order        []*storedEvent // by seq
	made         int64
	rev          int64
	changed      time.Time
	updatedFloor time.Time // the oldest updatedMin that is taken
	tokens       tokenState
}

// What an account may do with a calendar. The first four are roles of Google's;
// the others make every call of the calendar fail.
const (
	AccessOwner    = "owner"
	AccessWriter   = "writer"
	AccessReader   = "reader"
	AccessFreeBusy = "freeBusyReader"
	AccessNone     = "none"      // 404, and the list no longer names it
	AccessMissing  = "missing"   // 404, though the list names it
	AccessDenied   = "forbidden" // 403, though the list names it
)

var accesses = []string{AccessOwner, AccessWriter, AccessReader, AccessFreeBusy, AccessNone, AccessMissing, AccessDenied}

// A Info is what a calendar is made from.
type Info struct {
	ID       string `json:"id"`                  // the account's address for its primary calendar
	Summary  string `json:"summary,omitempty"`   // the id if empty
	TimeZone string `json:"time_zone,omitempty"` // IANA; UTC if empty
}

// oldestUpdatedMin is how far back updatedMin may reach. Google's bound is
// unverified.
const oldestUpdatedMin = 28 * 24 * time.Hour

// NewAccount makes the calendars of an account, of which the primary one is always
// there.
func NewAccount(email string, n *Channels) *Account {
	d := &Account{email: email, channels: n}
	d.add(Info{ID: email}, time.UTC)
	return d
}

// Add makes an empty calendar, or returns the one of that id.
func (d *Account) Add(info Info) (*Calendar, error) {
	zone, err := time.LoadLocation(cmp.Or(info.TimeZone, "UTC"))
	if err != nil {
		return nil, fmt.Errorf("add calendar %q of %s: %w", info.ID, d.email, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.find(info.ID); c != nil {
		return c, nil
	}
	return d.add(info, zone), nil
}

// Calendar returns a calendar by its id or as "primary"; nil where there is none.
func (d *Account) Calendar(id string) *Calendar {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.find(id)
}

// Calendars returns the calendars in the order of the list.
func (d *Account) Calendars() []*Calendar {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calendars)
}

// ExpireListTokens is [Calendar.ExpireTokens] for the list of calendars.
func (d *Account) ExpireListTokens(always bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tokens.syncs++
	d.tokens.expired = always
}

// find looks for a calendar by its id; nil where there is none. The caller holds
// the lock.
func (d *Account) find(id string) *Calendar {
	if id == "" {
		return nil
	}
	for _, c := range d.calendars {
		if c.IsNamed(id) {
			return c
		}
	}
	return nil
}

// add makes a calendar. The caller holds the lock, or has the account for itself.
func (d *Account) add(info Info, zone *time.Location) *Calendar {
	now := time.Now()
	c := &Calendar{
		account: d, id: info.ID, summary: cmp.Or(info.Summary, info.ID), zone: zone,
		primary: len(d.calendars) == 0, access: AccessOwner, events: map[string]*storedEvent{},
		changed: now, updatedFloor: now.Add(-oldestUpdatedMin),
	}
	d.calendars = append(d.calendars, c)
	c.relist()
	return c
}

// relist notes that the calendar's entry in the list changed.
func (c *Calendar) relist() {
	c.account.rev++
	c.listRev = c.account.rev
	c.account.tell(nil)
}

// IsNamed reports whether an id is the calendar's. The primary one is also called
// "primary", and by its address in any case.
func (c *Calendar) IsNamed(id string) bool {
	return c.id == id || c.primary && (id == "primary" || strings.EqualFold(c.id, id))
}

// ID returns the calendar's id.
func (c *Calendar) ID() string { return c.id }

// put stores an event, in place of the one of its id if there is one. The caller
// holds the lock.
func (c *Calendar) put(e Event) *storedEvent {
	c.rev++
	c.changed = time.Now()
	now := c.changed.UTC()
	stored := &storedEvent{Event: e, rev: c.rev, updated: now}
	if e.raw == nil {
		stored.Kind, stored.Updated = eventKind, now.Format(stampLayout)
		stored.Etag = fmt.Sprintf("\"%d%06d\"", now.UnixMilli()*2, c.rev%1_000_000)
	}
	if old, ok := c.events[e.ID]; ok {
		stored.seq = old.seq
		i, _ := slices.BinarySearchFunc(c.order, old.seq, func(e *storedEvent, seq int64) int { return cmp.Compare(e.seq, seq) })
		c.order[i] = stored
	} else {
		c.made++
		stored.seq = c.made
		c.order = append(c.order, stored)
	}
	c.events[e.ID] = stored
	c.account.tell(c)
	return stored
}

// rendered is an event as an answer in that zone has it.
func (c *Calendar) rendered(e Event, zone *time.Location) Event {
	e.Start, e.End, e.OriginalStartTime = e.Start.in(zone), e.End.in(zone), e.OriginalStartTime.in(zone)
	return e
}

// Events returns the truth about the calendar: all its events in the order in
// which they were made, cancelled ones as the stubs that are left of them.
func (c *Calendar) Events() []Event {
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	all := make([]Event, 0, len(c.order))
	for _, e := range c.order {
		shown := e.Event
		if e.cancelled() {
			shown = e.stub()
		}
		all = append(all, c.rendered(shown, c.zone))
	}
	return all
}
