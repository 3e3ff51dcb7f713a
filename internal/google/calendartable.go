package google

import (
	"net/http"
	"strings"

	"headroom/jobs"
)

// The calls of Calendar.
const (
	callCalendars     call = "calendarList.list"
	callCalendarsPage call = "calendarList.list, next page" // with a sync token or a page token
	callEvents        call = "events.list"
	callEventsPage    call = "events.list, next page" // with a sync token or a page token
)

// CalendarScope is the OAuth scope that the service account needs for calendars.
const CalendarScope = "https://www.googleapis.com/auth/calendar.readonly"

const hintCalendars = "in the Workspace admin console, under domain-wide delegation, grant the service account's client id the scope " + CalendarScope

// calendarRules is the table of [rules] for the calls of Calendar. An answer about one
// calendar never has a class that stops the account.
var calendarRules = []rule{
	{status: 400, reasons: []string{"failedPrecondition"}, calls: []call{callCalendars}, class: jobs.ClassTransient,
		hint: "if that goes on, check that the user has calendars and that the service account may act for the user"},
	{status: 400, calls: []call{callCalendarsPage, callEventsPage}, class: jobs.ClassCursor},
	{status: 400, calls: []call{callEvents}, class: jobs.ClassItem},

	{status: 401, class: jobs.ClassAccount,
		hint: "a fresh token was refused as well: check that the user is not suspended; " + hintCalendars},

	{status: 403, reasons: []string{"accessNotConfigured", "SERVICE_DISABLED"}, class: jobs.ClassProject,
		hint: "enable the Google Calendar API for the Google Cloud project, at the address that the message names"},
	{status: 403, reasons: []string{"insufficientPermissions", "ACCESS_TOKEN_SCOPE_INSUFFICIENT"}, class: jobs.ClassAccount,
		hint: hintCalendars},
	{status: 403, reasons: []string{"domainPolicy"}, class: jobs.ClassAccount,
		hint: "the domain's administrators must allow the Calendar API for this user"},
	{status: 403, reasons: []string{"notACalendarUser"}, class: jobs.ClassAccount,
		hint: "the user has no calendar: switch Google Calendar on for the user"},
	{status: 403, calls: []call{callEvents, callEventsPage, callWatchEvents}, class: jobs.ClassForbidden},
	{status: 403, reasons: []string{"forbidden"}, class: jobs.ClassAccount,
		hint: "the token is not for this account: check its address; " + hintCalendars},

	{status: 404, calls: []call{callEvents, callEventsPage, callWatchEvents}, class: jobs.ClassGone},
	{status: 404, class: jobs.ClassAccount, hint: "Google knows no such account: check its address"},

	{status: 410, reasons: []string{"deleted"}, calls: []call{callEvents, callEventsPage}, class: jobs.ClassGone},
	{status: 410, class: jobs.ClassExpired},

	// A refusal for quota of a kind that was not recognised.
	{status: http.StatusTooManyRequests, class: jobs.ClassQuota},
}

// rulesOf returns the table for a call's answers.
func rulesOf(c call) []rule {
	if c.api() == "calendar" {
		return calendarRules
	}
	return rules
}

// api names the call's API.
func (c call) api() string {
	if strings.HasPrefix(string(c), "calendarList.") || strings.HasPrefix(string(c), "events.") {
		return "calendar"
	}
	return "gmail"
}
