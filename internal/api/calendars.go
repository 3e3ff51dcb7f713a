package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"headroom/internal/agenda"
	"headroom/jobs"
)

const tagCalendars = "calendars"

var (
	exampleCalendar = jobs.CountedCalendar{
		Calendar: jobs.Calendar{
			Account: "ann@example.com", ID: "team@group.calendar.google.com", Summary: "Team", TimeZone: "Europe/Berlin",
			AccessRole: "reader", State: jobs.CalendarSynced, Stream: jobs.Stream{Gen: 1, Pages: 1, SyncedAt: exampleTime},
		},
		Events: 42,
	}
	exampleEvent = jobs.Event{
		Calendar: exampleCalendar.ID, ID: "6gq3", Status: "confirmed", ICalUID: "6gq3@google.com", Updated: exampleTime, ETag: `"3414"`,
		JSON: json.RawMessage(`{"id":"6gq3","summary":"Stand-up"}`),
	}
	exampleOccurrence = agenda.Occurrence{
		Calendar: exampleCalendar.ID, ID: "6gq3_20260202T080000Z", ICalUID: "6gq3@google.com", Series: "6gq3", Summary: "Stand-up",
		Start: agenda.When{Time: exampleTime.Add(44 * time.Hour), Zone: "Europe/Berlin"}, End: agenda.When{Time: exampleTime.Add(45 * time.Hour), Zone: "Europe/Berlin"},
	}
)

// CalendarPath names a calendar of an account in a path.
type CalendarPath struct {
	AccountPath
	Calendar string `path:"calendar" example:"primary" maxLength:"512" doc:"The calendar's id, percent-escaped; or primary."`
}

// Occurrences is a page of what takes place, and what could not be understood of
// the events that it comes from.
type Occurrences struct {
	Page[agenda.Occurrence]
	Problems []agenda.Problem `json:"problems" nullable:"false" doc:"Events that are not understood, and missing or incomplete here; and notices, which say how something odd was read."`
}

func (a *API) addCalendars() {
	add(a, operation{
		ID: "list-calendars", Method: http.MethodGet, Path: "/accounts/{email}/calendars", Tag: tagCalendars,
		Summary: "List stored calendars", Description: "Lists the calendars of an account by id: how far each is in step, and how many events it has. Those that left the account's list are kept.",
		Errors: []int{http.StatusNotFound}, Example: Page[jobs.CountedCalendar]{Items: []jobs.CountedCalendar{exampleCalendar}},
	}, func(ctx context.Context, in *struct {
		AccountPath
		Paging
	}) (*Body[Page[jobs.CountedCalendar]], error) {
		all, err := a.control.Calendars(ctx, in.Email)
		return pagedOf(in.Paging, all, func(c jobs.CountedCalendar) string { return c.ID }), err
	})
	add(a, operation{
		ID: "list-events", Method: http.MethodGet, Path: "/accounts/{email}/calendars/{calendar}/events", Tag: tagCalendars,
		Summary: "List stored events", Description: "Lists single events, series and the occurrences that differ from their series, by id, as Google gave them.",
		Errors: []int{http.StatusNotFound}, Example: Page[jobs.Event]{Items: []jobs.Event{exampleEvent}},
	}, func(ctx context.Context, in *struct {
		CalendarPath
		Paging
		Deleted bool `query:"deleted" doc:"Deleted events, too."`
	}) (*Body[Page[jobs.Event]], error) {
		found, err := a.control.Events(ctx, in.Email, in.Calendar, jobs.EventQuery{After: in.after, Limit: in.Limit + 1, Deleted: in.Deleted})
		return paged(in.Paging, found, func(e jobs.Event) string { return e.ID }), err
	})
	a.addOccurrences()
}

func (a *API) addOccurrences() {
	add(a, operation{
		ID: "list-occurrences", Method: http.MethodGet, Path: "/accounts/{email}/calendars/{calendar}/occurrences", Tag: tagCalendars,
		Summary:     "List what takes place, occurrence by occurrence",
		Description: "Lists the occurrences of all stored events between two moments by their beginning: moved ones where they are, cancelled ones not at all. From now on for two years where nothing else is said.",
		Errors:      []int{http.StatusNotFound}, Example: Occurrences{Page[agenda.Occurrence]{Items: []agenda.Occurrence{exampleOccurrence}}, []agenda.Problem{}},
	}, func(ctx context.Context, in *struct {
		CalendarPath
		Paging
		From moment `query:"from" doc:"Only what ends after this moment; a date begins in UTC."`
		To   moment `query:"to" doc:"Only what begins before this moment; a date begins in UTC."`
	}) (*Body[Occurrences], error) {
		if !in.To.IsZero() && !in.From.Before(in.To.Time) {
			return nil, invalid(errors.New("from is not before to"))
		}
		page, err := a.control.Occurrences(ctx, in.Email, in.Calendar, agenda.Span{From: in.From.Time, To: in.To.Time}, in.after, in.Limit)
		if errors.Is(err, agenda.ErrCursor) {
			return nil, cursorError{}
		}
		next := ""
		if page.Next != "" {
			next = sealCursor(in.list, page.Next)
		}
		return &Body[Occurrences]{Occurrences{
			Page[agenda.Occurrence]{Items: append([]agenda.Occurrence{}, page.Occurrences...), Next: next}, append([]agenda.Problem{}, page.Problems...),
		}}, err
	})
}
