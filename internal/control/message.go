package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"headroom/internal/blob"
	"headroom/jobs"
)

// FindMessages lists the stored messages of an account that the filter lets through,
// by id from those after afterID on.
func (c *Control) FindMessages(ctx context.Context, email string, f jobs.MessageFilter, afterID string, limit int) ([]jobs.Message, error) {
	s, account, err := c.known(ctx, email)
	if err != nil {
		return nil, err
	}
	return s.FindMessages(ctx, account.Email, f, afterID, limit)
}

// CountMessages counts what [Control.FindMessages] lists, and their bytes.
func (c *Control) CountMessages(ctx context.Context, email string, f jobs.MessageFilter) (n, bytes int64, err error) {
	s, err := c.store(ctx)
	if err != nil {
		return 0, 0, err
	}
	return s.CountFound(ctx, email, f)
}

// Message returns the row of a stored message. The error is a [jobs.ErrNotFound] whose
// hint is the next step if there is no such account or message.
func (c *Control) Message(ctx context.Context, email, id string) (jobs.Message, error) {
	s, account, err := c.known(ctx, email)
	if err != nil {
		return jobs.Message{}, err
	}
	m, err := s.Message(ctx, account.Email, id)
	if errors.Is(err, jobs.ErrNotFound) {
		err = missing("headroom messages list "+account.Email+" names those that are", "no message %q of %s is stored", id, account.Email)
	}
	return m, err
}

// Bodies returns the stored bodies.
func (c *Control) Bodies() *blob.Folder { return Blobs(c.cfg) }

// OpenMessage opens the raw bytes of a stored message; the caller closes them. The
// error is like that of [Control.Message], also if only the row is stored.
func (c *Control) OpenMessage(ctx context.Context, email, id string) (jobs.Message, io.ReadCloser, error) {
	m, err := c.Message(ctx, email, id)
	switch {
	case err != nil:
	case m.SHA256 != "":
		raw, err := c.openBody(ctx, m.SHA256, "body", m)
		return m, raw, err
	case m.ParseStatus == jobs.ParseNever:
		err = missing("start its backfill again with a larger worker.max_message_bytes", "of message %q of %s no body is stored, since it has %d bytes", id, m.Account, m.Size)
	case m.FullSHA256 != "":
		err = missing("read it with --full, or start a backfill in format raw", "message %q of %s is stored in format full only", id, m.Account)
	default:
		err = missing("headroom backfill show "+m.Account+" says whether it comes yet", "of message %q of %s no body is stored", id, m.Account)
	}
	return m, nil, err
}

// OpenFull opens what format full has stored of a message: Google's answer or, if a
// part is named, the content of that attachment. The caller closes it; the error is
// like that of [Control.OpenMessage].
func (c *Control) OpenFull(ctx context.Context, email, id, part string) (io.ReadCloser, error) {
	if part != "" {
		_, content, err := c.OpenAttachment(ctx, email, id, part)
		return content, err
	}
	m, err := c.fullMessage(ctx, email, id)
	if err != nil {
		return nil, err
	}
	return c.openBody(ctx, m.FullSHA256, "content", m)
}

// Attachments lists the attachments of a message that is stored in format full. The
// error is like that of [Control.OpenMessage].
func (c *Control) Attachments(ctx context.Context, email, id string) ([]jobs.Attachment, error) {
	m, err := c.fullMessage(ctx, email, id)
	return m.Attachments, err
}

// OpenAttachment opens the content of an attachment, by its part; the caller closes it.
func (c *Control) OpenAttachment(ctx context.Context, email, id, part string) (jobs.Attachment, io.ReadCloser, error) {
	m, err := c.fullMessage(ctx, email, id)
	if err != nil {
		return jobs.Attachment{}, nil, err
	}
	i := slices.IndexFunc(m.Attachments, func(a jobs.Attachment) bool { return a.Part == part })
	if i < 0 {
		return jobs.Attachment{}, nil, missing(fmt.Sprintf("headroom messages get %s %s names those it has", m.Account, m.ID),
			"message %q of %s has no attachment that is part %s", m.ID, m.Account, part)
	}
	content, err := c.openBody(ctx, m.Attachments[i].SHA256, "content", m)
	return m.Attachments[i], content, err
}

// fullMessage is a message that is stored in format full.
func (c *Control) fullMessage(ctx context.Context, email, id string) (jobs.Message, error) {
	m, err := c.Message(ctx, email, id)
	if err == nil && m.FullSHA256 == "" {
		err = missing("start a backfill with --format full", "message %q of %s is not stored in format full", id, m.Account)
	}
	return m, err
}

func (c *Control) openBody(ctx context.Context, sum, what string, m jobs.Message) (io.ReadCloser, error) {
	content, err := c.Bodies().Open(ctx, sum)
	if errors.Is(err, jobs.ErrNotFound) {
		return nil, missing("run: headroom store check --repair", "the %s of message %q of %s is missing in the blob folder (%s)", what, m.ID, m.Account, sum)
	}
	return content, err
}
