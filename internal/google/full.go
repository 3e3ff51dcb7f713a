package google

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"

	"headroom/internal/lenient"
	"headroom/jobs"
)

// Fields of a part's content. The tap reads data.
const attachmentFields = "size,data"

// threadFields is the field mask of a thread for its messages' metadata.
const threadFields = "id,messages(" + metadataFields + ")"

var errNoContent = errors.New("the answer has another length than it says")

// Full gets one message as Gmail parses it, with all fields, but without the content
// of its attachments: [Mailbox.Attachment] gets that.
func (m *Mailbox) Full(ctx context.Context, id string) (jobs.Fetched, error) {
	var fetched jobs.Fetched
	err := m.whole(ctx, callGet, func(ctx context.Context) (size int, err error) {
		if id == "" {
			return 0, errNoID
		}
		text, err := m.get(ctx, "messages/{id}", map[string]string{"id": id}, url.Values{"format": {"full"}})
		if err != nil {
			return 0, err
		}
		var odd lenient.Problems
		if fetched, odd, err = fullOf(text); err != nil {
			return 0, err
		}
		m.google.unreadable(callGet, odd)
		return len(text), message{ID: fetched.ID}.checkID(id)
	})
	if err != nil {
		return jobs.Fetched{}, err
	}
	return fetched, nil
}

// Thread gets all messages of a thread: their metadata or, in format full, each as
// [Mailbox.Full] does. It leaves out a message that cannot be read.
func (m *Mailbox) Thread(ctx context.Context, id string, format jobs.Format) ([]jobs.Fetched, error) {
	query, read := url.Values{"format": {"metadata"}, "metadataHeaders": {"Subject"}, "fields": {threadFields}}, metadataOf
	if format == jobs.FormatFull {
		query, read = url.Values{"format": {"full"}}, fullOf
	}
	var all []jobs.Fetched
	err := m.whole(ctx, callThread, func(ctx context.Context) (size int, err error) {
		if id == "" {
			return 0, errNoID
		}
		text, err := m.get(ctx, "threads/{id}", map[string]string{"id": id}, query)
		if err != nil {
			return 0, err
		}
		thread, err := readPage(bytes.NewReader(text))
		if err != nil {
			return 0, err
		}
		all = itemsOf(m.google, callThread, thread, read)
		return len(text), nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// whole makes a call whose answer is held in memory while it is decoded. Send returns
// its size.
func (m *Mailbox) whole(ctx context.Context, c call, send func(context.Context) (int, error)) error {
	metered, ticket := m.google.budget.withTicket(ctx, nil)
	defer ticket.release()
	ticket.whole, ticket.most = true, maxWholeBody
	var size int
	err := m.do(metered, c, func(ctx context.Context) (err error) {
		size, err = send(ctx)
		return err
	})
	if err == nil {
		m.google.metrics.fetchBytes.Add(float64(size))
	}
	return err
}

// metadataOf decodes a message of a thread.
func metadataOf(text json.RawMessage) (jobs.Fetched, lenient.Problems, error) {
	m, odd, err := messageOf(text)
	return m.fetched(), odd, err
}

// messageOf decodes a message without a body.
func messageOf(text []byte) (m message, odd lenient.Problems, err error) {
	if odd, err = lenient.Unmarshal(text, &m); errors.Is(err, lenient.ErrNull) {
		return m, odd, err
	} else if err != nil {
		return m, odd, notObject(err)
	}
	if p, found := odd.Of("id"); found {
		return m, odd, &fieldError{p}
	}
	if m.ID == "" {
		err = errNoMessage
	}
	return m, odd, err
}

// fullOf decodes a message in format full. Its text is Google's answer without blanks
// between values: the same from a thread as by itself.
func fullOf(text json.RawMessage) (jobs.Fetched, lenient.Problems, error) {
	m, odd, err := messageOf(text)
	if err != nil {
		return jobs.Fetched{}, odd, err
	}
	if p, found := odd.Of("payload"); found && m.Payload == nil {
		return jobs.Fetched{}, odd, &fieldError{p}
	}
	fetched := m.fetched()
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return jobs.Fetched{}, odd, fmt.Errorf("message %s is no JSON: %w", m.ID, err)
	}
	fetched.JSON, fetched.Attachments = compact.Bytes(), attachmentsOf(m.Payload)
	return fetched, odd, nil
}

// Attachment gets the content of an attachment that [Mailbox.Full] named recently, and
// writes it to content as it arrives, under the terms of [Mailbox.Fetch]. It returns
// the length in bytes.
func (m *Mailbox) Attachment(ctx context.Context, message string, a jobs.Attachment, content io.Writer) (size int64, err error) {
	counted := &countingWriter{Writer: content}
	metered, ticket := m.google.budget.withTicket(ctx, counted)
	defer ticket.release()
	ticket.field = "data"
	err = m.do(metered, callAttachment, func(ctx context.Context) error {
		if message == "" || a.ID == "" {
			return errNoID
		}
		var answer body
		_, err := m.object(ctx, callAttachment, "messages/{message}/attachments/{id}", map[string]string{"message": message, "id": a.ID},
			url.Values{"fields": {attachmentFields}}, &answer, "data")
		if err != nil {
			return err
		}
		// An empty answer is an error, unless the message has an empty attachment.
		silent := answer.Size == nil && counted.n == 0 && a.Size > 0
		if answer.Data != "" || answer.size() != 0 && answer.size() != counted.n || silent {
			return errNoContent
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	m.google.metrics.fetchBytes.Add(float64(counted.n))
	return counted.n, nil
}
