package google

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"google.golang.org/api/calendar/v3"
	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/googleapi"

	"headroom/quota"
)

// Calls about watches.
const (
	callWatch       call = "watch"
	callWatchList   call = "calendarList.watch"
	callWatchEvents call = "events.watch"
	callStopChannel call = "channels.stop"
)

var errNoExpiry = errors.New("the answer does not say when the watch ends")

// Watch makes Gmail publish every change of the mailbox to a topic of Pub/Sub, until
// the moment that it returns.
func (m *Mailbox) Watch(ctx context.Context, topic string) (until time.Time, err error) {
	err = m.do(ctx, callWatch, func(ctx context.Context) error {
		body, err := post(ctx, m.client, m.service.BasePath, "gmail/v1/users/me/watch", nil, url.Values{}, &gmail.WatchRequest{TopicName: topic})
		if err != nil {
			return err
		}
		_, until, err = m.google.watched(callWatch, body)
		return err
	})
	return until, err
}

// WatchCalendar opens a channel, on which Calendar reports every change of a calendar's
// events, or of the list of calendars for an empty id, to an address until the moment
// that it returns. The resource that it returns is needed to stop the channel. With an
// error, made is false if the channel certainly does not exist.
func (c *Calendar) WatchCalendar(ctx context.Context, calendarID, id, token, address string) (resource string, until time.Time, made bool, err error) {
	what := callWatchEvents
	if calendarID == "" {
		what = callWatchList
	}
	err = c.do(ctx, what, func(ctx context.Context) error {
		path, ids := "users/me/calendarList/watch", map[string]string(nil)
		if calendarID != "" {
			path, ids = "calendars/{calendarId}/events/watch", map[string]string{"calendarId": calendarID}
		}
		body, err := post(ctx, c.account.client, c.account.calendar.BasePath, path, ids, url.Values{"quotaUser": {c.quotaUser}},
			&calendar.Channel{Id: id, Token: token, Type: "web_hook", Address: address})
		if err != nil {
			return err
		}
		resource, until, err = c.google.watched(what, body)
		return err
	})
	return resource, until, !refused(err), err
}

// watched decodes the answer to a call that makes a watch: the resource by which it can
// be stopped, if any, and when it ends.
func (g *Google) watched(c call, body io.ReadCloser) (resource string, until time.Time, err error) {
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		return "", until, err
	}
	var w struct {
		Resource   string `json:"resourceId"`
		Expiration int64  `json:"expiration,string"` // ms since 1970
	}
	if _, err := g.read(c, text, &w); err != nil {
		return "", until, err
	}
	if w.Expiration <= 0 {
		return w.Resource, until, errNoExpiry
	}
	return w.Resource, time.UnixMilli(w.Expiration).UTC(), nil
}

// refused reports whether an error means that Google did nothing: our ledger refused
// the call, or Google rejected the request, unless it did so because the same was done
// before.
func refused(err error) bool {
	answer, answered := errors.AsType[*googleapi.Error](err)
	return isLedgers(err) || answered && answer.Code >= 400 && answer.Code < 500 && !slices.Contains(reasonsOf(answer), "channelIdNotUnique")
}

// StopChannel stops a channel. A missing channel is not an error.
func (c *Calendar) StopChannel(ctx context.Context, id, resource string) error {
	return c.do(ctx, callStopChannel, func(ctx context.Context) error {
		err := c.account.calendar.Channels.Stop(&calendar.Channel{Id: id, ResourceId: resource}).Context(ctx).Do(googleapi.QuotaUser(c.quotaUser))
		if answer, ok := errors.AsType[*googleapi.Error](err); ok && answer.Code == http.StatusNotFound {
			return nil
		}
		return err
	})
}

// do makes one call under its bounds, as [Mailbox.do] does.
func (c *Calendar) do(ctx context.Context, what call, send func(context.Context) error) error {
	start := time.Now()
	ctx = quota.WithCaller(ctx, c.caller)
	bounded, cancel := context.WithTimeout(ctx, callTimeout+c.caller.MaxWait)
	defer cancel()
	err := c.google.through(bounded, gateKey{project: c.caller.Project, before: beforeCalendar}, what, func() error {
		return c.google.classify(ctx, what, send(bounded))
	})
	c.google.metrics.seconds.WithLabelValues(what.method()).Observe(time.Since(start).Seconds())
	c.google.metrics.calls.WithLabelValues(what.method(), outcome(err)).Inc()
	return err
}
