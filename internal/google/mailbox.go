package google

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	listFields    googleapi.Field = "messages(id,threadId),nextPageToken"
	messageFields googleapi.Field = "id,threadId,labelIds,historyId,internalDate,sizeEstimate,raw"

	metadataFields googleapi.Field = "id,threadId,labelIds,historyId,internalDate,sizeEstimate,payload/headers"
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

// List returns a page of up to 500 message ids, newest first: the first page for
// an empty token. A page may be empty and still name a next one.
func (m *Mailbox) List(ctx context.Context, search jobs.Search, pageToken string) (jobs.Page, error) {
	c := callList
	request := m.service.Users.Messages.List(me).MaxResults(pageSize).IncludeSpamTrash(search.SpamTrash).Fields(listFields)
	if search.Query != "" {
		request.Q(search.Query)
	}
	if len(search.Labels) > 0 {
		request.LabelIds(search.Labels...)
	}
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
		page = pageOf(answer)
		return nil
	})
	return page, err
}

func pageOf(answer *gmail.ListMessagesResponse) jobs.Page {
	page := jobs.Page{IDs: make([]string, 0, len(answer.Messages)), Next: answer.NextPageToken}
	for _, message := range answer.Messages {
		if message != nil && message.Id != "" {
			page.IDs, page.Threads = append(page.IDs, message.Id), append(page.Threads, message.ThreadId)
		}
	}
	return page
}

// Fetch gets one message and writes it to raw as it comes in, byte for byte. An
// error of raw's ends the call and is returned as it is. What was written before
// an error is worth nothing. The call may wait for its share of the byte budget.
func (m *Mailbox) Fetch(ctx context.Context, id string, raw io.Writer) (jobs.Fetched, error) {
	counted := &countingWriter{Writer: raw}
	metered, ticket := m.google.budget.withTicket(ctx, counted)
	defer ticket.release()
	var fetched jobs.Fetched
	var sunk *sinkError
	err := m.do(metered, callGet, func(ctx context.Context) error {
		if id == "" {
			return errNoID // its path would be that of the listing
		}
		message, err := m.service.Users.Messages.Get(me, id).Format("raw").Fields(messageFields).Context(ctx).Do()
		if s, ok := errors.AsType[*sinkError](err); ok {
			sunk = s
			return nil // Google has answered as it should
		}
		if err != nil {
			return err
		}
		if message.Raw != "" || counted.n == 0 && message.SizeEstimate > 0 && message.Id != "" {
			err = errNoRaw
		}
		fetched = fieldsOf(message)
		if wrong := checkID(id, message); wrong != nil {
			return wrong
		}
		return err
	})
	switch {
	case err != nil:
		return jobs.Fetched{}, err
	case sunk != nil:
		return jobs.Fetched{}, sunk.err
	}
	m.google.metrics.fetchBytes.Add(float64(counted.n))
	return fetched, nil
}

// Metadata gets one message without its body.
func (m *Mailbox) Metadata(ctx context.Context, id string) (jobs.Fetched, error) {
	var fetched jobs.Fetched
	err := m.do(ctx, callGet, func(ctx context.Context) error {
		if id == "" {
			return errNoID
		}
		message, err := m.service.Users.Messages.Get(me, id).Format("metadata").MetadataHeaders("Subject").
			Fields(metadataFields).Context(ctx).Do()
		if err != nil {
			return err
		}
		fetched = fieldsOf(message)
		return checkID(id, message)
	})
	if err != nil {
		return jobs.Fetched{}, err
	}
	return fetched, nil
}

// fieldsOf reads a message's fields, any of which Google may leave out.
func fieldsOf(message *gmail.Message) jobs.Fetched {
	fetched := jobs.Fetched{ID: message.Id, ThreadID: message.ThreadId, HistoryID: message.HistoryId,
		Labels: message.LabelIds, SizeEstimate: message.SizeEstimate}
	if message.InternalDate != 0 {
		fetched.InternalDate = time.UnixMilli(message.InternalDate).UTC()
	}
	if message.Payload == nil {
		return fetched
	}
	for _, header := range message.Payload.Headers {
		if header != nil && strings.EqualFold(header.Name, "Subject") {
			fetched.Subject = subjectOf(header.Value)
			break
		}
	}
	return fetched
}

// checkID reports whether an answer is about the message that was asked for. One
// without an id holds no message.
func checkID(id string, message *gmail.Message) error {
	switch message.Id {
	case id:
		return nil
	case "":
		return errNoMessage
	}
	return fmt.Errorf("%w: asked for %s, got %s", errWrongID, id, message.Id)
}

type countingWriter struct {
	io.Writer
	n int64
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.n += int64(n)
	return n, err
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
