package google

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/api/calendar/v3"
	"google.golang.org/api/option"

	"headroom/internal/lenient"
	"headroom/jobs"
	"headroom/quota"
)

// Calendar's largest pages. A page costs one unit, whatever its size.
const (
	calendarPageSize = 250
	eventPageSize    = 2500
)

var errNoItemID = errors.New("an entry of the answer has no id")

// A Calendar is one account's calendars in one lane. It is safe for concurrent use.
type Calendar struct {
	google    *Google
	account   *account
	caller    quota.Caller
	quotaUser string
}

// Calendar opens an account's calendars for calls in a lane, under the terms of
// [Google.Mailbox].
func (g *Google) Calendar(ctx context.Context, a jobs.Account, lane quota.Lane, maxWait time.Duration) (*Calendar, error) {
	if !lane.Valid() {
		return nil, fmt.Errorf("calendars of %s: unknown lane %q", a.Email, lane)
	}
	if a.Email == "" {
		return nil, errors.New("calendars of an account without an address")
	}
	clients, err := g.account(ctx, accountKey{project: a.Project, email: a.Email})
	if err != nil {
		return nil, fmt.Errorf("calendars of %s: %w", a.Email, err)
	}
	return &Calendar{google: g, account: clients, quotaUser: QuotaUser(a.QuotaUser()),
		caller: quota.Caller{Project: a.Project, User: a.QuotaUser(), Lane: lane, MaxWait: maxWait}}, nil
}

// QuotaUser returns the value that tells Google which user a call of Calendar is
// charged to. Without it, under domain-wide delegation, Google charges the service
// account for all of its users. It is a hash that does not reveal the address, one for
// each user of the ledger; Google accepts up to 40 characters.
func QuotaUser(email string) string {
	sum := sha256.Sum256([]byte(jobs.FoldAddress(email)))
	return hex.EncodeToString(sum[:20])
}

func (g *Google) newCalendar(ctx context.Context, key accountKey, credentials *keyFile) (*calendar.Service, *http.Client, error) {
	client := g.client(key, credentials, CalendarScope)
	options := []option.ClientOption{option.WithHTTPClient(client)}
	if g.opts.Endpoint != "" {
		options = append(options, option.WithEndpoint(strings.TrimSuffix(g.opts.Endpoint, "/")+"/calendar/v3/"))
	}
	service, err := calendar.NewService(ctx, options...)
	if err != nil {
		return nil, nil, fmt.Errorf("make a Calendar client: %w", err)
	}
	service.UserAgent = userAgent
	return service, client, nil
}

// Calendars gets a page of the account's list of calendars: the whole list or, with a
// sync token, what has changed since; the first page for an empty page token. It calls
// use while the page's memory is accounted for, and returns use's error as it is. An
// error of [jobs.ClassExpired] means that the sync token no longer works, and one of
// [jobs.ClassCursor] that a token is invalid.
func (c *Calendar) Calendars(ctx context.Context, syncToken, pageToken string, use func(jobs.CalendarListPage) error) error {
	query := url.Values{"maxResults": {strconv.Itoa(calendarPageSize)}, "showDeleted": {"true"}, "showHidden": {"true"}}
	return listPage(ctx, c, tokenCall(callCalendars, callCalendarsPage, query, syncToken, pageToken), "users/me/calendarList", "", query,
		func(what call, p answerPage) jobs.CalendarListPage {
			return jobs.CalendarListPage{Next: p.nextPageToken, SyncToken: p.nextSyncToken, Calendars: itemsOf(c.google, what, p, entryOf)}
		}, use)
}

// Events gets a page of a calendar's events, under the terms of [Calendar.Calendars].
// Series are not expanded, and deleted events are included. All requests of a pass
// have the same parameters except for the page token. An error of [jobs.ClassGone] or
// [jobs.ClassForbidden] concerns this calendar only.
func (c *Calendar) Events(ctx context.Context, calendarID, syncToken, pageToken string, use func(jobs.EventPage) error) error {
	query := url.Values{"maxResults": {strconv.Itoa(eventPageSize)}, "showDeleted": {"true"}, "singleEvents": {"false"}}
	return listPage(ctx, c, tokenCall(callEvents, callEventsPage, query, syncToken, pageToken), "calendars/{calendarId}/events", calendarID, query,
		func(what call, p answerPage) jobs.EventPage {
			return jobs.EventPage{Next: p.nextPageToken, SyncToken: p.nextSyncToken, Updated: p.updated, Events: itemsOf(c.google, what, p, eventOf)}
		}, use)
}

// tokenCall puts the tokens into a query and returns which call that makes.
func tokenCall(first, next call, query url.Values, syncToken, pageToken string) call {
	if syncToken != "" {
		query.Set("syncToken", syncToken)
	}
	if pageToken != "" {
		query.Set("pageToken", pageToken)
	}
	if syncToken != "" || pageToken != "" {
		return next
	}
	return first
}

// listPage makes one call and calls use with its page.
func listPage[P any](ctx context.Context, c *Calendar, what call, path, calendarID string, query url.Values,
	read func(call, answerPage) P, use func(P) error) error {
	metered, ticket := c.google.budget.withTicket(ctx, nil)
	ticket.whole = true
	defer ticket.release()
	var page P
	start := time.Now()
	bounded, cancel := context.WithTimeout(quota.WithCaller(metered, c.caller), callTimeout+c.caller.MaxWait)
	defer cancel()
	err := c.google.through(bounded, gateKey{project: c.caller.Project, before: beforeCalendar}, what, func() error {
		answer, err := c.get(bounded, path, calendarID, query)
		if err == nil {
			page = read(what, answer)
		}
		return c.google.classify(quota.WithCaller(ctx, c.caller), what, err)
	})
	c.google.metrics.seconds.WithLabelValues(what.method()).Observe(time.Since(start).Seconds())
	c.google.metrics.calls.WithLabelValues(what.method(), outcome(err)).Inc()
	if err != nil {
		return err
	}
	return use(page)
}

// get requests a page of Calendar.
func (c *Calendar) get(ctx context.Context, path, calendarID string, query url.Values) (answerPage, error) {
	query.Set("quotaUser", c.quotaUser)
	body, err := get(ctx, c.account.client, c.account.calendar.BasePath, path, map[string]string{"calendarId": calendarID}, query)
	if err != nil {
		return answerPage{}, err
	}
	defer body.Close()
	return readPage(body)
}

// entryOf decodes one entry of the list of calendars.
func entryOf(item json.RawMessage) (e jobs.CalendarEntry, odd lenient.Problems, err error) {
	var fields struct {
		ID              string `json:"id"`
		Summary         string `json:"summary"`
		SummaryOverride string `json:"summaryOverride"`
		TimeZone        string `json:"timeZone"`
		AccessRole      string `json:"accessRole"`
		Primary         bool   `json:"primary"`
		Deleted         bool   `json:"deleted"`
	}
	if odd, err = lenient.Unmarshal(item, &fields); err != nil {
		return e, odd, err
	}
	if fields.ID == "" {
		return e, odd, errNoItemID
	}
	e.ID, e.TimeZone, e.AccessRole, e.Primary, e.Deleted = fields.ID, fields.TimeZone, fields.AccessRole, fields.Primary, fields.Deleted
	e.Summary, e.JSON = fields.Summary, item
	if fields.SummaryOverride != "" {
		e.Summary = fields.SummaryOverride
	}
	return e, odd, nil
}

// A start is the original start of an occurrence.
type start struct {
	Date     string `json:"date"`
	DateTime string `json:"dateTime"`
}

// eventOf decodes one event. A tombstone may have only an id and a status.
func eventOf(item json.RawMessage) (e jobs.Event, odd lenient.Problems, err error) {
	var fields struct {
		ID            string `json:"id"`
		Status        string `json:"status"`
		ETag          string `json:"etag"`
		ICalUID       string `json:"iCalUID"`
		Updated       string `json:"updated"`
		Series        string `json:"recurringEventId"`
		OriginalStart start  `json:"originalStartTime"`
	}
	if odd, err = lenient.Unmarshal(item, &fields, lenient.Text(func(s string) start { return start{Date: s} })); err != nil {
		return e, odd, err
	}
	if fields.ID == "" {
		return e, odd, errNoItemID
	}
	original := fields.OriginalStart.DateTime
	if original == "" {
		original = fields.OriginalStart.Date
	}
	return jobs.Event{ID: fields.ID, Status: fields.Status, ETag: fields.ETag, ICalUID: fields.ICalUID, Updated: momentOf(fields.Updated),
		Series: fields.Series, OriginalStart: original, JSON: item}, odd, nil
}
