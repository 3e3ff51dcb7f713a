package calendar

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An Event is an event of a calendar as the API gives it: a single one, the
// master of a series, or an exception to one.
type Event struct {
	Kind               string          `json:"kind,omitempty"`
	Etag               string          `json:"etag,omitempty"`
	ID                 string          `json:"id,omitempty"`
	Status             string          `json:"status,omitempty"`
	HTMLLink           string          `json:"htmlLink,omitempty"`
	Created            string          `json:"created,omitempty"`
	Updated            string          `json:"updated,omitempty"`
	Summary            string          `json:"summary,omitempty"`
	Description        string          `json:"description,omitempty"`
	Location           string          `json:"location,omitempty"`
	ColorID            string          `json:"colorId,omitempty"`
	Creator            *EventPerson    `json:"creator,omitempty"`
	Organizer          *EventPerson    `json:"organizer,omitempty"`
	Start              *EventTime      `json:"start,omitempty"`
	End                *EventTime      `json:"end,omitempty"`
	EndTimeUnspecified bool            `json:"endTimeUnspecified,omitempty"`
	Recurrence         []string        `json:"recurrence,omitempty"`
	RecurringEventID   string          `json:"recurringEventId,omitempty"`
	OriginalStartTime  *EventTime      `json:"originalStartTime,omitempty"`
	Transparency       string          `json:"transparency,omitempty"`
	Visibility         string          `json:"visibility,omitempty"`
	ICalUID            string          `json:"iCalUID,omitempty"`
	Sequence           int             `json:"sequence,omitempty"`
	Attendees          []EventAttendee `json:"attendees,omitempty"`
	AttendeesOmitted   bool            `json:"attendeesOmitted,omitempty"`
	HangoutLink        string          `json:"hangoutLink,omitempty"`
	AnyoneCanAddSelf   bool            `json:"anyoneCanAddSelf,omitempty"`
	GuestsCanModify    bool            `json:"guestsCanModify,omitempty"`
	PrivateCopy        bool            `json:"privateCopy,omitempty"`
	Locked             bool            `json:"locked,omitempty"`
	Reminders          *EventReminders `json:"reminders,omitempty"`
	EventType          string          `json:"eventType,omitempty"`

	ExtendedProperties *EventProperties `json:"extendedProperties,omitempty"`

	raw json.RawMessage // of an event that was put as it is; see Calendar.Put
}

// An EventTime is a day, or a moment with the zone it is kept in. An end that is
// a day is the first after the event.
type EventTime struct {
	Date     string `json:"date,omitempty"`
	DateTime string `json:"dateTime,omitempty"`
	TimeZone string `json:"timeZone,omitempty"`
}

// An EventPerson is an event's creator or organizer.
type EventPerson struct {
	Email       string `json:"email,omitempty"`
	DisplayName string `json:"displayName,omitempty"`
	Self        bool   `json:"self,omitempty"`
}

// An EventAttendee is one who was invited.
type EventAttendee struct {
	Email          string `json:"email,omitempty"`
	DisplayName    string `json:"displayName,omitempty"`
	Organizer      bool   `json:"organizer,omitempty"`
	Self           bool   `json:"self,omitempty"`
	Resource       bool   `json:"resource,omitempty"`
	Optional       bool   `json:"optional,omitempty"`
	ResponseStatus string `json:"responseStatus,omitempty"`
	Comment        string `json:"comment,omitempty"`
}

// EventReminders are when an event is announced.
type EventReminders struct {
	UseDefault bool            `json:"useDefault"`
	Overrides  []EventReminder `json:"overrides,omitempty"`
}

// An EventReminder comes so many minutes before an event.
type EventReminder struct {
	Method  string `json:"method,omitempty"`
	Minutes int    `json:"minutes"`
}

// EventProperties are what programs note in an event: for this copy of it alone,
// or for all who were invited.
type EventProperties struct {
	Private map[string]string `json:"private,omitempty"`
	Shared  map[string]string `json:"shared,omitempty"`
}

// have reports whether the properties have all of these, each NAME=VALUE.
func (p *EventProperties) have(private, shared []string) bool {
	if p == nil {
		return len(private) == 0 && len(shared) == 0
	}
	has := func(in map[string]string, wanted []string) bool {
		return !slices.ContainsFunc(wanted, func(w string) bool {
			name, value, _ := strings.Cut(w, "=")
			got, ok := in[name]
			return !ok || got != value
		})
	}
	return has(p.Private, private) && has(p.Shared, shared)
}

// The statuses of an event.
const (
	EventConfirmed = "confirmed"
	EventTentative = "tentative"
	EventCancelled = "cancelled" // deleted, or for an exception: does not take place
)

// A storedEvent is an event and its place in the calendar. Events are replaced
// and never changed, so that a copy may be read without the lock.
type storedEvent struct {
	Event
	seq     int64 // the order in which events were made
	rev     int64 // of the calendar at the last change
	updated time.Time
}

func (e *storedEvent) cancelled() bool { return e.Status == EventCancelled }

func (e *Event) master() bool    { return len(e.Recurrence) > 0 }
func (e *Event) exception() bool { return e.RecurringEventID != "" }

// stub is what is left of an event that was cancelled: of an exception Google
// promises its id, its series and its original start, of others the id alone.
func (e *Event) stub() Event {
	s := Event{Kind: eventKind, Etag: e.Etag, ID: e.ID, Status: EventCancelled}
	if e.exception() {
		s.RecurringEventID, s.OriginalStartTime = e.RecurringEventID, e.OriginalStartTime
	}
	return s
}

const (
	eventKind = "calendar#event"
	dayLayout = "2006-01-02"
	// floatingLayout is of a moment that leaves its offset to the time zone beside it.
	floatingLayout = "2006-01-02T15:04:05"
	stampLayout    = "2006-01-02T15:04:05.000Z"
)

// moment is when the time is; a day begins at midnight in zone.
func (t *EventTime) moment(zone *time.Location) (time.Time, error) {
	if t == nil {
		return time.Time{}, fmt.Errorf("no time")
	}
	if t.Date != "" {
		return time.ParseInLocation(dayLayout, t.Date, zone)
	}
	if at, err := time.Parse(time.RFC3339, t.DateTime); err == nil {
		return at, nil
	}
	own, err := t.location(zone)
	if err != nil {
		return time.Time{}, err
	}
	return time.ParseInLocation(floatingLayout, t.DateTime, own)
}

// location is the zone that the time is kept in, or the calendar's.
func (t *EventTime) location(zone *time.Location) (*time.Location, error) {
	if t.TimeZone == "" {
		return zone, nil
	}
	return time.LoadLocation(t.TimeZone)
}

// in writes the time as the API does: with the offset of the zone of the answer,
// while timeZone stays the event's own.
func (t *EventTime) in(zone *time.Location) *EventTime {
	if t == nil || t.Date != "" {
		return t
	}
	at, err := t.moment(zone)
	if err != nil {
		return t
	}
	return &EventTime{DateTime: rfc3339(at.In(zone)), TimeZone: t.TimeZone}
}

// rfc3339 writes a moment; in UTC where its offset is not of whole minutes, as it
// was everywhere until about 1900, and could not be written.
func rfc3339(at time.Time) string {
	if _, offset := at.Zone(); offset%60 != 0 {
		at = at.UTC()
	}
	return at.Format(time.RFC3339)
}

// like makes a time of the same kind and zone as t at another moment.
func (t *EventTime) like(at time.Time, zone *time.Location) *EventTime {
	if t.Date != "" {
		return &EventTime{Date: at.In(zone).Format(dayLayout)}
	}
	return &EventTime{DateTime: rfc3339(at.In(zone)), TimeZone: t.TimeZone}
}

// occurrenceSuffix is what the id of an occurrence adds to its series'.
func occurrenceSuffix(t *EventTime, zone *time.Location) string {
	if t.Date != "" {
		return strings.ReplaceAll(t.Date, "-", "")
	}
	at, err := t.moment(zone)
	if err != nil {
		return t.DateTime
	}
	return at.UTC().Format("20060102T150405Z")
}

// OccurrenceID is the id of the occurrence of a series that begins, or began
// before it was moved, at original.
func (c *Calendar) OccurrenceID(series string, original EventTime) string {
	return series + "_" + occurrenceSuffix(&original, c.zone)
}

var idEncoding = base32.HexEncoding.WithPadding(base32.NoPadding)

// madeID is 26 letters and digits that depend on what it is made of.
func madeID(of ...string) string {
	h := sha256.New()
	for _, s := range of {
		h.Write([]byte(strconv.Itoa(len(s)) + ":" + s))
	}
	return strings.ToLower(idEncoding.EncodeToString(h.Sum(nil)))[:26]
}
