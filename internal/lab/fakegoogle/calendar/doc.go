// Package calendar is the fake's Calendar: the calendars of accounts with their
// events and recurrence, the methods of the API on them, and the channels that are
// notified of changes. Who calls, what it costs and what goes wrong is decided before
// it is asked.
package calendar
