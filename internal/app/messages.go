package app

import (
	"context"
	"errors"
	"io"
	"slices"

	"headroom/config"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

// KnownAccount returns an account of the store. The error is a [jobs.ErrNotFound]
// that says how to add it.
func KnownAccount(ctx context.Context, cfg config.Config, s *sqlite.Store, email string) (jobs.Account, error) {
	account, err := s.Account(ctx, email)
	if errors.Is(err, jobs.ErrNotFound) {
		return jobs.Account{}, unknownAccount(cfg, email)
	}
	if err != nil {
		return jobs.Account{}, err
	}
	account.SharedWith, err = s.SameMailbox(ctx, account)
	return account, err
}

// StoredMessage returns the row of a stored message. The error is a
// [jobs.ErrNotFound] that says what to do when there is no such account or
// message.
func StoredMessage(ctx context.Context, cfg config.Config, s *sqlite.Store, email, id string) (jobs.Message, error) {
	account, err := KnownAccount(ctx, cfg, s, email)
	if err != nil {
		return jobs.Message{}, err
	}
	m, err := s.Message(ctx, account.Email, id)
	if errors.Is(err, jobs.ErrNotFound) {
		return jobs.Message{}, missing("no message %q of %s is stored; headroom messages list %s names those that are", id, account.Email, account.Email)
	}
	return m, err
}

// OpenMessage opens the raw bytes of a stored message; the caller closes them. The
// error is like that of [StoredMessage], also where only the row is stored.
func OpenMessage(ctx context.Context, cfg config.Config, s *sqlite.Store, email, id string) (jobs.Message, io.ReadCloser, error) {
	m, err := StoredMessage(ctx, cfg, s, email, id)
	if err != nil {
		return jobs.Message{}, nil, err
	}
	if m.SHA256 == "" {
		if m.ParseStatus == jobs.ParseNever {
			return jobs.Message{}, nil, missing("of message %q of %s no body is stored, since it has %d bytes; start its backfill again with a larger worker.max_message_bytes", id, m.Account, m.Size)
		}
		if m.FullSHA256 != "" {
			return jobs.Message{}, nil, missing("message %q of %s is stored in format full only; read it with --full, or start a backfill in format raw", id, m.Account)
		}
		return jobs.Message{}, nil, missing("of message %q of %s no body is stored; headroom backfill show %s says whether it comes yet", id, m.Account, m.Account)
	}
	raw, err := Blobs(cfg).Open(ctx, m.SHA256)
	if errors.Is(err, jobs.ErrNotFound) {
		return jobs.Message{}, nil, missing("the body of message %q of %s is missing in the blob folder (%s); run: headroom store check --repair", id, m.Account, m.SHA256)
	}
	return m, raw, err
}

// OpenFull opens what format full has brought of a stored message: Google's answer,
// or, if a part is named, the content of that attachment. The caller closes it; the
// error is like that of [OpenMessage].
func OpenFull(ctx context.Context, cfg config.Config, s *sqlite.Store, email, id, part string) (io.ReadCloser, error) {
	m, err := fullMessage(ctx, cfg, s, email, id)
	if err != nil {
		return nil, err
	}
	if part != "" {
		_, content, err := openAttachment(ctx, cfg, m, part)
		return content, err
	}
	return openPart(ctx, cfg, m, m.FullSHA256)
}

// StoredAttachments lists the attachments of a message that is stored in format full.
// The error is like that of [OpenMessage].
func StoredAttachments(ctx context.Context, cfg config.Config, s *sqlite.Store, email, id string) ([]jobs.Attachment, error) {
	m, err := fullMessage(ctx, cfg, s, email, id)
	return m.Attachments, err
}

// OpenAttachment opens the content of one of them, by its part; the caller closes it.
func OpenAttachment(ctx context.Context, cfg config.Config, s *sqlite.Store, email, id, part string) (jobs.Attachment, io.ReadCloser, error) {
	m, err := fullMessage(ctx, cfg, s, email, id)
	if err != nil {
		return jobs.Attachment{}, nil, err
	}
	return openAttachment(ctx, cfg, m, part)
}

// fullMessage is a message that is stored in format full.
func fullMessage(ctx context.Context, cfg config.Config, s *sqlite.Store, email, id string) (jobs.Message, error) {
	m, err := StoredMessage(ctx, cfg, s, email, id)
	if err == nil && m.FullSHA256 == "" {
		err = missing("message %q of %s is not stored in format full; start a backfill with --format full", id, m.Account)
	}
	return m, err
}

func openAttachment(ctx context.Context, cfg config.Config, m jobs.Message, part string) (jobs.Attachment, io.ReadCloser, error) {
	i := slices.IndexFunc(m.Attachments, func(a jobs.Attachment) bool { return a.Part == part })
	if i < 0 {
		return jobs.Attachment{}, nil, missing("message %q of %s has no attachment that is part %s; headroom messages get %s %s names those it has", m.ID, m.Account, part, m.Account, m.ID)
	}
	content, err := openPart(ctx, cfg, m, m.Attachments[i].SHA256)
	return m.Attachments[i], content, err
}

func openPart(ctx context.Context, cfg config.Config, m jobs.Message, sum string) (io.ReadCloser, error) {
	content, err := Blobs(cfg).Open(ctx, sum)
	if errors.Is(err, jobs.ErrNotFound) {
		return nil, missing("the content of message %q of %s is missing in the blob folder (%s); run: headroom store check --repair", m.ID, m.Account, sum)
	}
	return content, err
}
