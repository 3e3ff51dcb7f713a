package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"headroom/jobs"
)

var exampleWatch = jobs.Watch{
	WatchKey: jobs.WatchKey{Account: "ann@example.com", Kind: jobs.WatchCalendar, Calendar: "team@group.calendar.google.com"},
	State:    jobs.WatchActive, Channel: jobs.ChannelMark + "Zk3vN1qYw0bX2m4T9aLr8Q",
	ExpiresAt: exampleTime.Add(5 * 24 * time.Hour), RenewedAt: exampleTime.Add(-2 * 24 * time.Hour), RenewAt: exampleTime.Add(3 * 24 * time.Hour),
	LastPushAt: exampleTime.Add(-time.Hour),
}

func (a *API) addWatches() {
	add(a, operation{
		ID: "list-watches", Method: http.MethodGet, Path: "/watches", Tag: "push",
		Summary: "List what Google tells of", Description: "Lists the watches of mailboxes, lists of calendars and calendars, by account: until when Google tells of changes, when that is renewed, when it last told of one, and what has failed.",
		Errors: []int{http.StatusNotFound}, Example: Page[jobs.Watch]{Items: []jobs.Watch{exampleWatch}},
	}, func(ctx context.Context, in *struct {
		Paging
		Account string `query:"account" maxLength:"254" doc:"Only those of this account, by its address."`
	}) (*Body[Page[jobs.Watch]], error) {
		found, err := a.control.Watches(ctx, in.Account, watchAfter(in.after), in.Limit+1)
		return paged(in.Paging, found, watchCursor), err
	})
}

// watchCursor is a watch's key in one text. Neither an address nor a kind has a
// space.
func watchCursor(w jobs.Watch) string {
	return w.Account + " " + string(w.Kind) + " " + w.Calendar
}

func watchAfter(cursor string) (k jobs.WatchKey) {
	account, rest, _ := strings.Cut(cursor, " ")
	kind, calendar, _ := strings.Cut(rest, " ")
	return jobs.WatchKey{Account: account, Kind: jobs.WatchKind(kind), Calendar: calendar}
}
