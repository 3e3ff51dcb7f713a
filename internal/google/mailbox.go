package google

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"google.golang.org/api/gmail/v1"

	"headroom/internal/lenient"
	"headroom/jobs"
	"headroom/quota"
)

const (
	// callTimeout bounds a call that brings no message with all its attempts, its wait for memory and
	// the reading of its body. The wait for quota comes on top.
	callTimeout = 2 * time.Minute
	pageSize    = 500 // Gmail's largest; a page costs the same, however many ids it holds
	me          = "me"
)

// Field masks of requests. They save bytes, not units.
const (
	profileFields = "emailAddress,messagesTotal,historyId"
	listFields    = "messages(id,threadId),nextPageToken"
	messageFields = "id,threadId,labelIds,historyId,internalDate,sizeEstimate,raw"

	metadataFields = "id,threadId,labelIds,historyId,internalDate,sizeEstimate,payload/headers"
)

// A Mailbox is one account's Gmail in one lane. It is safe for concurrent use.
type Mailbox struct {
	google  *Google
	service *gmail.Service
	client  *http.Client // of service
	caller  quota.Caller
}

// Profile returns the mailbox's profile.
func (m *Mailbox) Profile(ctx context.Context) (jobs.Profile, error) {
	var profile jobs.Profile
	err := m.do(ctx, callProfile, func(ctx context.Context) error {
		var p struct {
			Email     string `json:"emailAddress"`
			Messages  int64  `json:"messagesTotal"`
			HistoryID uint64 `json:"historyId,string"`
		}
		if _, err := m.object(ctx, callProfile, "profile", nil, url.Values{"fields": {profileFields}}, &p, "historyId"); err != nil {
			return err
		}
		profile = jobs.Profile{Email: p.Email, Messages: max(p.Messages, 0), HistoryID: possible(p.HistoryID)}
		if profile.HistoryID == 0 {
			return errNoHistoryID
		}
		return nil
	})
	return profile, err
}

// List returns a page of up to 500 message ids, newest first: the first page for an
// empty token. A page may be empty and still have a next one.
func (m *Mailbox) List(ctx context.Context, search jobs.Search, pageToken string) (jobs.Page, error) {
	query := url.Values{}
	if search.Query != "" {
		query.Set("q", search.Query)
	}
	return m.list(ctx, search.Labels, search.SpamTrash, pageToken, query)
}

// ListAll returns a page of up to 500 ids of all messages, including spam and trash,
// or of all messages with a label, if one is given: the first page for an empty token.
func (m *Mailbox) ListAll(ctx context.Context, label, pageToken string) (jobs.Page, error) {
	var labels []string
	if label != "" {
		labels = []string{label}
	}
	return m.list(ctx, labels, true, pageToken, url.Values{})
}

func (m *Mailbox) list(ctx context.Context, labels []string, spamTrash bool, pageToken string, query url.Values) (page jobs.Page, err error) {
	query.Set("maxResults", strconv.Itoa(pageSize))
	query.Set("includeSpamTrash", strconv.FormatBool(spamTrash))
	query.Set("fields", listFields)
	if len(labels) > 0 {
		query["labelIds"] = labels
	}
	c := callList
	if pageToken != "" {
		c = callNextPage
		query.Set("pageToken", pageToken)
	}
	err = m.do(ctx, c, func(ctx context.Context) error {
		answer, err := m.page(ctx, "messages", query)
		if err != nil {
			return err
		}
		listed := itemsOf(m.google, c, answer, listedOf)
		page = jobs.Page{IDs: make([]string, 0, len(listed)), Next: answer.nextPageToken}
		for _, l := range listed {
			page.IDs, page.Threads = append(page.IDs, l.ID), append(page.Threads, l.ThreadID)
		}
		return nil
	})
	return page, err
}

// listed is a message in a listing.
type listed struct {
	ID       string `json:"id"`
	ThreadID string `json:"threadId"`
}

func listedOf(text json.RawMessage) (l listed, odd lenient.Problems, err error) {
	if odd, err = lenient.Unmarshal(text, &l); err == nil && l.ID == "" {
		err = errNoItemID
	}
	return l, odd, err
}

// Fetch gets one message and writes it to raw as it comes in, byte for byte. An
// error of raw's ends the call and is returned as it is. What was written before
// an error is worth nothing. The call may wait for its share of the byte budget.
func (m *Mailbox) Fetch(ctx context.Context, id string, raw io.Writer) (jobs.Fetched, error) {
	counted := &countingWriter{Writer: raw}
	metered, ticket := m.google.budget.withTicket(ctx, counted)
	defer ticket.release()
	var fetched jobs.Fetched
	err := m.do(metered, callGet, func(ctx context.Context) error {
		if id == "" {
			return errNoID // its path would be that of the listing
		}
		message, odd, err := m.message(ctx, id, url.Values{"format": {"raw"}, "fields": {messageFields}})
		if err != nil {
			return err
		}
		fetched = message.fetched()
		if err := message.checkID(id); err != nil {
			return err
		}
		_, unsized := odd.Of("sizeEstimate")
		if message.Raw != "" || counted.n == 0 && (message.SizeEstimate != 0 || unsized) {
			return errNoRaw
		}
		return nil
	})
	if err != nil {
		return jobs.Fetched{}, err
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
		message, _, err := m.message(ctx, id, url.Values{"format": {"metadata"}, "metadataHeaders": {"Subject"}, "fields": {metadataFields}})
		if err != nil {
			return err
		}
		fetched = message.fetched()
		return message.checkID(id)
	})
	if err != nil {
		return jobs.Fetched{}, err
	}
	return fetched, nil
}

// message requests one message.
func (m *Mailbox) message(ctx context.Context, id string, query url.Values) (message message, odd lenient.Problems, err error) {
	odd, err = m.object(ctx, callGet, "messages/{id}", map[string]string{"id": id}, query, &message, neededOfMessage...)
	return message, odd, err
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

// do makes one call under its bounds, counts it and classifies its error. An error of
// the writer that takes a message is no error of the call: Google has answered as it
// should. It comes back as it is.
func (m *Mailbox) do(ctx context.Context, c call, send func(context.Context) error) error {
	start := time.Now()
	ctx = quota.WithCaller(ctx, m.caller)
	bound := callTimeout
	if c == callGet || c == callThread || c == callAttachment {
		bound = jobs.LongestFetch // as long as its body comes on
	}
	bounded, cancel := context.WithTimeout(ctx, bound+m.caller.MaxWait)
	defer cancel()
	var sink *sinkError
	err := m.google.through(bounded, gateKey{project: m.caller.Project, before: beforeGmail}, c, func() error {
		err := send(bounded)
		if errors.As(err, &sink) {
			return nil
		}
		return m.google.classify(ctx, c, err)
	})
	m.google.metrics.seconds.WithLabelValues(c.method()).Observe(time.Since(start).Seconds())
	m.google.metrics.calls.WithLabelValues(c.method(), outcome(err)).Inc()
	if err == nil && sink != nil {
		return sink.err
	}
	return err
}
