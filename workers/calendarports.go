package workers

import (
	"context"
	"time"

	"headroom/jobs"
	"headroom/quota"
)

// CalendarStore keeps what calendar sync reads. Its methods are fenced as those of
// [Store] are. A calendar or list that they return may have a time before which it
// is to be left alone.
type CalendarStore interface {
	// BeginCalendars says that a slice begins, and returns where the account's
	// list of calendars stands.
	BeginCalendars(ctx context.Context, ref jobs.TaskRef) (jobs.CalendarList, error)
	// ApplyCalendarList writes down a page of the list.
	ApplyCalendarList(ctx context.Context, ref jobs.TaskRef, page jobs.CalendarListPage) (jobs.CalendarList, error)
	// ExpireCalendarList says that the list's sync token was refused, and
	// RestartCalendarList that a page token leads nowhere.
	ExpireCalendarList(ctx context.Context, ref jobs.TaskRef) (jobs.CalendarList, error)
	RestartCalendarList(ctx context.Context, ref jobs.TaskRef) (jobs.CalendarList, error)

	// RoundCalendars lists the calendars that are left to be read now, those
	// first that are read as a whole last.
	RoundCalendars(ctx context.Context, ref jobs.TaskRef) ([]jobs.Calendar, error)
	// ApplyEvents writes down a page of a calendar's events, with the place
	// behind it, in one transaction.
	ApplyEvents(ctx context.Context, ref jobs.TaskRef, calendar string, page jobs.EventPage) (jobs.Calendar, error)
	// ExpireCalendar and RestartCalendar say the same of a calendar as of the
	// list.
	ExpireCalendar(ctx context.Context, ref jobs.TaskRef, calendar, reason string) (jobs.Calendar, error)
	RestartCalendar(ctx context.Context, ref jobs.TaskRef, calendar, reason string) (jobs.Calendar, error)
	// MarkCalendar says why a calendar cannot be read.
	MarkCalendar(ctx context.Context, ref jobs.TaskRef, calendar string, state jobs.CalendarState, reason string) (jobs.Calendar, error)
	// EndCalendars says that nothing is left to be read now.
	EndCalendars(ctx context.Context, ref jobs.TaskRef) (jobs.CalendarList, error)
}

// Calendars opens accounts' calendars, as [Google] opens mailboxes.
type Calendars interface {
	Calendar(ctx context.Context, account jobs.Account, lane quota.Lane, maxWait time.Duration) (Calendar, error)
}

// Calendar is one account's calendars, in the lane that they were opened for.
// Calls and errors are those of a [Mailbox]; a page is handed to use, whose error is
// returned as it is. It is safe for concurrent use.
//
// An error of jobs.ClassExpired says that the sync token no longer works, one of
// jobs.ClassCursor that a token is none; jobs.ClassGone and jobs.ClassForbidden are
// about the calendar that was asked for, and no other.
type Calendar interface {
	Calendars(ctx context.Context, syncToken, pageToken string, use func(jobs.CalendarListPage) error) error
	Events(ctx context.Context, calendar, syncToken, pageToken string, use func(jobs.EventPage) error) error
}
