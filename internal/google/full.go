package google

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/googleapi"

	"headroom/jobs"
)

// Fields of a part's content, of which data is tapped.
const attachmentFields googleapi.Field = "size,data"

// threadFields is what is asked of a thread for its messages' metadata.
const threadFields googleapi.Field = "id,messages(" + metadataFields + ")"

var (
	errNoContent = errors.New("the answer has another length than it says")
	errTwoParts  = errors.New("the answer names a part of the message twice")
)

// Full gets one message as Gmail parses it, without the content of its attachments:
// [Mailbox.Attachment] gets that. No field is left out, so that nothing of what
// Google says is lost.
func (m *Mailbox) Full(ctx context.Context, id string) (jobs.Fetched, error) {
	var fetched jobs.Fetched
	err := m.whole(ctx, callGet, func(ctx context.Context, answer *bytes.Buffer) error {
		if id == "" {
			return errNoID
		}
		answer.Reset()
		message, err := m.service.Users.Messages.Get(me, id).Format("full").Context(ctx).Do()
		if err != nil {
			return err
		}
		if err := checkID(id, message); err != nil {
			return err
		}
		fetched, err = fullOf(message, answer.Bytes())
		return err
	})
	if err != nil {
		return jobs.Fetched{}, err
	}
	return fetched, nil
}

// Thread gets the messages of a thread, all that it has: their metadata, or, in
// format full, each as [Mailbox.Full] does.
func (m *Mailbox) Thread(ctx context.Context, id string, format jobs.Format) ([]jobs.Fetched, error) {
	var all []jobs.Fetched
	err := m.whole(ctx, callThread, func(ctx context.Context, answer *bytes.Buffer) error {
		if id == "" {
			return errNoID
		}
		answer.Reset()
		request := m.service.Users.Threads.Get(me, id)
		if format == jobs.FormatFull {
			request.Format("full")
		} else {
			request.Format("metadata").MetadataHeaders("Subject").Fields(threadFields)
		}
		thread, err := request.Context(ctx).Do()
		if err != nil {
			return err
		}
		all, err = threadOf(thread, format, answer.Bytes())
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// whole makes a call whose answer is kept as it is while it is looked at.
func (m *Mailbox) whole(ctx context.Context, c call, send func(context.Context, *bytes.Buffer) error) error {
	metered, ticket := m.google.budget.withTicket(ctx, nil)
	defer ticket.release()
	ticket.whole, ticket.text = true, new(bytes.Buffer)
	err := m.do(metered, c, func(ctx context.Context) error { return send(ctx, ticket.text) })
	if err == nil {
		m.google.metrics.fetchBytes.Add(float64(ticket.text.Len()))
	}
	return err
}

// threadOf takes a thread apart.
func threadOf(thread *gmail.Thread, format jobs.Format, answer []byte) ([]jobs.Fetched, error) {
	var texts struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if format == jobs.FormatFull {
		if err := json.Unmarshal(answer, &texts); err != nil {
			return nil, fmt.Errorf("take a thread apart: %w", err)
		}
		if len(texts.Messages) != len(thread.Messages) {
			return nil, errNoMessage
		}
	}
	var all []jobs.Fetched
	for i, message := range thread.Messages {
		if message == nil || message.Id == "" {
			continue
		}
		fetched := fieldsOf(message)
		if format == jobs.FormatFull {
			var err error
			if fetched, err = fullOf(message, texts.Messages[i]); err != nil {
				return nil, err
			}
		}
		all = append(all, fetched)
	}
	return all, nil
}

// fullOf is a message in format full, whose text is that of Google's answer without
// blanks between its values: the same from a thread as by itself.
func fullOf(message *gmail.Message, text []byte) (jobs.Fetched, error) {
	fetched := fieldsOf(message)
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return jobs.Fetched{}, fmt.Errorf("message %s is no JSON: %w", message.Id, err)
	}
	fetched.JSON = compact.Bytes()
	fetched.Attachments = attachmentsOf(nil, message.Payload)
	seen := map[string]bool{}
	for _, a := range fetched.Attachments {
		if seen[a.Part] {
			return jobs.Fetched{}, errTwoParts
		}
		seen[a.Part] = true
	}
	return fetched, nil
}

// attachmentsOf adds the parts below one whose content comes by itself.
func attachmentsOf(found []jobs.Attachment, part *gmail.MessagePart) []jobs.Attachment {
	if part == nil {
		return found
	}
	if b := part.Body; b != nil && b.AttachmentId != "" && b.Data == "" {
		found = append(found, jobs.Attachment{Part: part.PartId, Filename: part.Filename, MimeType: part.MimeType, Size: b.Size, ID: b.AttachmentId})
	}
	for _, child := range part.Parts {
		found = attachmentsOf(found, child)
	}
	return found
}

// Attachment gets the content of an attachment that [Mailbox.Full] named lately, and
// writes it to content as it comes in, under the terms of [Mailbox.Fetch]. It
// returns its length.
func (m *Mailbox) Attachment(ctx context.Context, message string, a jobs.Attachment, content io.Writer) (size int64, err error) {
	counted := &countingWriter{Writer: content}
	metered, ticket := m.google.budget.withTicket(ctx, counted)
	defer ticket.release()
	ticket.field = "data"
	var sunk *sinkError
	err = m.do(metered, callAttachment, func(ctx context.Context) error {
		if message == "" || a.ID == "" {
			return errNoID
		}
		body, err := m.service.Users.Messages.Attachments.Get(me, message, a.ID).Fields(attachmentFields).Context(ctx).Do()
		if s, ok := errors.AsType[*sinkError](err); ok {
			sunk = s
			return nil // Google has answered as it should
		}
		if err != nil {
			return err
		}
		if body.Data != "" || body.Size != 0 && body.Size != counted.n {
			return errNoContent
		}
		return nil
	})
	switch {
	case err != nil:
		return 0, err
	case sunk != nil:
		return 0, sunk.err
	}
	m.google.metrics.fetchBytes.Add(float64(counted.n))
	return counted.n, nil
}
