package sqlite

import (
	"context"
	"fmt"

	"headroom/jobs"
)

const upsertAttachment = `INSERT INTO attachments (account, message, part, filename, mime_type, size, sha256)
	VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (account, message, part) DO UPDATE SET filename = excluded.filename,
		mime_type = excluded.mime_type, size = excluded.size, sha256 = excluded.sha256`

// SaveAttachment records an attachment of a message whose content is stored. It is
// recorded before the message is, so that whoever has to get the message again
// need not get the attachment.
func (s *Store) SaveAttachment(ctx context.Context, ref jobs.TaskRef, message string, a jobs.Attachment) error {
	if err := jobs.CheckSum(a.SHA256); err != nil {
		return fmt.Errorf("save attachment %s of message %q: %w", a.Part, message, err)
	}
	_, err := s.owned(ctx, inLine, ref, "save an attachment", func(ctx context.Context, x *tx, r *row) error {
		_, err := x.ExecContext(ctx, upsertAttachment, r.Account, message, a.Part, clean(a.Filename), clean(a.MimeType), a.Size, a.SHA256)
		return err
	})
	return err
}

// Attachments lists the stored attachments of a message by their parts.
func (s *Store) Attachments(ctx context.Context, account, message string) ([]jobs.Attachment, error) {
	found, err := list(ctx, s, func(scan func(...any) error, a *jobs.Attachment) error {
		return scan(&a.Part, &a.Filename, &a.MimeType, &a.Size, &a.SHA256)
	}, "SELECT part, filename, mime_type, size, sha256 FROM attachments WHERE account = ? AND message = ? ORDER BY part", normal(account), message)
	if err != nil {
		return nil, fmt.Errorf("attachments of message %q of %s: %w", message, account, err)
	}
	return found, nil
}
