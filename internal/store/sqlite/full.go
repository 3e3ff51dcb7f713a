package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	"headroom/jobs"
)

// Of a message whose raw bytes are stored, too, what was read from them stays.
const upsertFull = `INSERT INTO messages (account, id, thread_id, history_id, internal_date, labels, size, sha256,
		subject, parse_status, parse_error, full_sha256, full_size)
	VALUES (?, ?, ?, ?, ?, ?, ?, '', ?, ?, '', ?, ?)
	ON CONFLICT (account, id) DO UPDATE SET thread_id = excluded.thread_id, internal_date = excluded.internal_date,
		size = CASE WHEN messages.sha256 = '' THEN excluded.size ELSE messages.size END,
		subject = CASE WHEN messages.sha256 = '' THEN excluded.subject ELSE messages.subject END,
		parse_status = CASE WHEN messages.sha256 = '' THEN excluded.parse_status ELSE messages.parse_status END,
		full_sha256 = excluded.full_sha256, full_size = excluded.full_size, stub = 0,
		` + newestLabels + `, ` + liftTombstone + `
	WHERE excluded.history_id >= messages.history_id OR messages.full_sha256 = '' OR messages.deleted_at <> 0`

// saveFull writes the row of a message that came in format full.
func (b *batch) saveFull(ctx context.Context, m jobs.Message) error {
	if m.Labels == nil {
		m.Labels = []string{}
	}
	labels, err := json.Marshal(m.Labels)
	if err != nil {
		return fmt.Errorf("encode labels: %w", err)
	}
	return b.exec(ctx, upsertFull, b.row.Account, m.ID, m.ThreadID, int64(m.HistoryID), m.InternalDate.UnixMilli(),
		string(labels), m.Size, clean(m.Subject), m.ParseStatus, m.FullSHA256, m.FullSize)
}

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
