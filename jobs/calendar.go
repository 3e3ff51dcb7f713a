package jobs

import (
	"encoding/json"
	"time"
)

// CalendarID is the id of the sync of an account's calendars. There is one such
// job for each account; it begins again whenever a sync is asked for.
func CalendarID(email string) string { return "calendar:" + FoldAddress(email) }

// CalendarState is where a calendar of an account stands.
type CalendarState string

// The states of a calendar. None of them ends the account's sync, and all but
// the last are tried again by a later one.
const (
	CalendarNew       CalendarState = "new"       // on the list, but never read to its end
	CalendarSynced    CalendarState = "synced"    // in step as of Stream.SyncedAt
	CalendarExpired   CalendarState = "expired"   // Google refused its sync token: it is read as a whole
	CalendarMissing   CalendarState = "missing"   // Google knows no such calendar, or shows it no more
	CalendarForbidden CalendarState = "forbidden" // the account may not read its events
	CalendarFailing   CalendarState = "failing"   // its calls fail, for another reason
	CalendarRemoved   CalendarState = "removed"   // no longer on the account's list; what was stored is kept
)

// A Calendar is one entry of an account's list of calendars, with how far it is
// in step.
type Calendar struct {
	Account    string          `json:"account"`
	ID         string          `json:"id"`
	Summary    string          `json:"summary"`
	TimeZone   string          `json:"time_zone,omitempty"`
	AccessRole string          `json:"access_role,omitempty"`
	Primary    bool            `json:"primary,omitempty"`
	JSON       json.RawMessage `json:"-"` // the entry as Google gave it

	State  CalendarState `json:"state"`
	Reason string        `json:"reason,omitempty"` // why it is not in step, for people
	Round  int64         `json:"-"`                // the last round that is done with it
	Stream Stream        `json:"stream"`
}

// CalendarList is an account's list of calendars, a stream of its own, with what
// has been asked of the account's sync.
type CalendarList struct {
	Account  string    `json:"account"`
	AskedAt  time.Time `json:"asked_at,omitzero"`  // a sync was asked for that has yet to begin
	AskedAll bool      `json:"asked_all"`          // and it is to read everything, not only what has changed
	BegunAt  time.Time `json:"begun_at,omitzero"`  // when the last one began
	SyncedAt time.Time `json:"synced_at,omitzero"` // when one last came to its end
	ResumeAt time.Time `json:"resume_at,omitzero"` // when one begins by itself, for a calendar that was left
	Round    int64     `json:"round"`              // counts the syncs
	Listed   bool      `json:"listed"`             // the list was read in this round
	Stream   Stream    `json:"stream"`
}

// CalendarListPage is one page of an account's list of calendars.
type CalendarListPage struct {
	Calendars []CalendarEntry
	Next      string // token of the next page; "": this was the last
	SyncToken string // set on the last page only
}

// A CalendarEntry is what the list says of one calendar.
type CalendarEntry struct {
	Calendar
	Deleted bool // the calendar was taken off the list
}

// EventPage is one page of a calendar's events.
type EventPage struct {
	Events    []Event
	Next      string    // token of the next page; "": this was the last
	SyncToken string    // set on the last page only
	Updated   time.Time // when the calendar last changed, as the page says; zero: it does not
}

// EventCancelled is the status of events that were deleted and of occurrences
// that do not take place.
const EventCancelled = "cancelled"

// An Event is a single event, a series, or an occurrence that differs from its
// series.
//
// A deleted event keeps its row, as a tombstone: DeletedAt says since when. An
// occurrence that was cancelled is none as long as its series is there: its
// status says that it does not take place.
type Event struct {
	Calendar string `json:"calendar"`
	ID       string `json:"id"`
	Status   string `json:"status"` // as Google last said
	ICalUID  string `json:"ical_uid,omitempty"`

	// Series is the id of the series that this is an occurrence of, and
	// OriginalStart when it would have begun: a date, or a moment in RFC 3339, as
	// Google gave it.
	Series        string `json:"series,omitempty"`
	OriginalStart string `json:"original_start,omitempty"`

	Updated   time.Time       `json:"updated,omitzero"` // the version, as Google dates it
	ETag      string          `json:"etag,omitempty"`
	JSON      json.RawMessage `json:"event"` // as Google gave it
	DeletedAt time.Time       `json:"deleted_at,omitzero"`
}

// Cancelled reports whether Google last gave the event as deleted or, of an
// occurrence, as not taking place.
func (e Event) Cancelled() bool { return e.Status == EventCancelled }

// An EventQuery chooses events of a calendar, in the order of their ids.
type EventQuery struct {
	After   string // the id before the first; "": from the first
	Limit   int    // 0: as the store likes
	Deleted bool   // tombstones too
}

// A CountedCalendar is a calendar and how many events, series and changed
// occurrences are stored of it, without those that were deleted or cancelled.
type CountedCalendar struct {
	Calendar
	Events int64 `json:"events"`
}
