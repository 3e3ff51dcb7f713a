package google

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/googleapi"

	"headroom/jobs"
	"headroom/quota"
)

const (
	// callTimeout bounds one call with all its attempts, its wait for memory and
	// the reading of its body. The wait for quota comes on top.
	callTimeout = 2 * time.Minute
	pageSize    = 500 // Gmail's largest; a page costs the same, however many ids it holds
	me          = "me"
)

// Fields that are asked for. The masks save bytes, not units.
const (
	profileFields googleapi.Field = "emailAddress,messagesTotal,historyId"
	listFields    googleapi.Field = "messages/id,nextPageToken"
	messageFields googleapi.Field = "id,threadId,labelIds,historyId,internalDate,sizeEstimate,raw"
)

// A Mailbox is one account's Gmail in one lane. It is safe for concurrent use.
type Mailbox struct {
	google  *Google
	service *gmail.Service
	caller  quota.Caller
}

// Profile returns what the mailbox says of itself.
func (m *Mailbox) Profile(ctx context.Context) (jobs.Profile, error) {
	var profile jobs.Profile
	err := m.do(ctx, callProfile, func(ctx context.Context) error {
		p, err := m.service.Users.GetProfile(me).Fields(profileFields).Context(ctx).Do()
		if err != nil {
			return err
		}
		if p.HistoryId == 0 {
			return errNoHistoryID
		}
		profile = jobs.Profile{Email: p.EmailAddress, Messages: p.MessagesTotal, HistoryID: p.HistoryId}
		return nil
	})
	return profile, err
}

// List returns a page of up to 500 message ids, newest first and without spam
// and trash: the first page for an empty token. A page may be empty and still
// name a next one.
func (m *Mailbox) List(ctx context.Context, pageToken string) (jobs.Page, error) {
	c := callList
	request := m.service.Users.Messages.List(me).MaxResults(pageSize).IncludeSpamTrash(false).Fields(listFields)
	if pageToken != "" {
		c = callNextPage
		request.PageToken(pageToken)
	}
	var page jobs.Page
	err := m.do(ctx, c, func(ctx context.Context) error {
		answer, err := request.Context(ctx).Do()
		if err != nil {
			return err
		}
		page = jobs.Page{IDs: make([]string, 0, len(answer.Messages)), Next: answer.NextPageToken}
		for _, message := range answer.Messages {
			if message != nil && message.Id != "" {
				page.IDs = append(page.IDs, message.Id)
			}
		}
		return nil
	})
	return page, err
}

// Fetch gets one message, raw, and returns what use returns. The message's
// bytes are only valid inside use, and are held against the byte budget until
// it has returned; before, the call may wait for its share of the budget.
func (m *Mailbox) Fetch(ctx context.Context, id string, use func(jobs.Fetched) error) error {
	metered, ticket := m.google.budget.withTicket(ctx)
	defer ticket.release()
	var fetched jobs.Fetched
	err := m.do(metered, callGet, func(ctx context.Context) error {
		if id == "" {
			return errNoID // its path would be that of the listing
		}
		message, err := m.service.Users.Messages.Get(me, id).Format("raw").Fields(messageFields).Context(ctx).Do()
		if err != nil {
			return err
		}
		fetched, err = decode(id, message)
		return err
	})
	if err != nil {
		return err
	}
	m.google.metrics.fetchBytes.Add(float64(len(fetched.Raw)))
	return use(fetched)
}

// decode reads a message's fields, any of which but the id Google may leave out:
// an answer without it holds no message. A message without a raw field is an
// empty one, unless it says that it is not.
func decode(id string, message *gmail.Message) (jobs.Fetched, error) {
	if message.Id == "" {
		return jobs.Fetched{}, errNoMessage
	}
	if message.Id != id {
		return jobs.Fetched{}, fmt.Errorf("%w: asked for %s, got %s", errWrongID, id, message.Id)
	}
	if message.Raw == "" && message.SizeEstimate > 0 {
		return jobs.Fetched{}, errNoRaw
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(message.Raw, "="))
	if err != nil {
		return jobs.Fetched{}, fmt.Errorf("decode raw: %w", err)
	}
	fetched := jobs.Fetched{ID: id, ThreadID: message.ThreadId, HistoryID: message.HistoryId, Labels: message.LabelIds, Raw: raw}
	if message.InternalDate != 0 {
		fetched.InternalDate = time.UnixMilli(message.InternalDate).UTC()
	}
	return fetched, nil
}

// do makes one call under its bounds, counts it and says what its error means.
func (m *Mailbox) do(ctx context.Context, c call, send func(context.Context) error) error {
	start := time.Now()
	bounded, cancel := context.WithTimeout(quota.WithCaller(ctx, m.caller), callTimeout+m.caller.MaxWait)
	defer cancel()
	err := m.google.classify(ctx, c, send(bounded))
	m.google.metrics.seconds.WithLabelValues(c.method()).Observe(time.Since(start).Seconds())
	m.google.metrics.calls.WithLabelValues(c.method(), outcome(err)).Inc()
	return err
}
