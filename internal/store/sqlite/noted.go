package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	"headroom/jobs"
)

// noteMessage writes a row whose body has yet to come, or what was not known yet
// into a stub of live sync. A row that has its body stays as it is, unless it is a
// tombstone, which is lifted.
const noteMessage = `INSERT INTO messages (account, id, thread_id, history_id, internal_date, labels, size, sha256,
		subject, parse_status, parse_error)
	VALUES (?, ?, ?, ?, ?, ?, ?, '', ?, ?, '')
	ON CONFLICT (account, id) DO UPDATE SET thread_id = excluded.thread_id, internal_date = excluded.internal_date,
		size = CASE WHEN messages.sha256 = '' THEN excluded.size ELSE messages.size END,
		subject = CASE WHEN messages.sha256 = '' THEN excluded.subject ELSE messages.subject END,
		parse_status = CASE WHEN messages.sha256 = '' THEN excluded.parse_status ELSE messages.parse_status END, stub = 0,
		` + newestLabels + `, ` + liftTombstone + `
	WHERE messages.sha256 = '' OR messages.deleted_at <> 0`

func (b *batch) noteMessage(ctx context.Context, m jobs.Message) error {
	if m.Labels == nil {
		m.Labels = []string{}
	}
	labels, err := json.Marshal(m.Labels)
	if err != nil {
		return fmt.Errorf("encode labels: %w", err)
	}
	return b.exec(ctx, noteMessage, b.row.Account, m.ID, m.ThreadID, int64(m.HistoryID), m.InternalDate.UnixMilli(),
		string(labels), m.Size, clean(m.Subject), m.ParseStatus)
}

// skipBody notes that a message's body was not brought for its size. Without its
// row, which was written before, only that is noted.
func (b *batch) skipBody(ctx context.Context, res jobs.Result) error {
	if res.Message != nil {
		m := *res.Message
		m.ParseStatus = jobs.ParseNever
		return b.noteMessage(ctx, m)
	}
	return b.exec(ctx, "UPDATE messages SET parse_status = ? WHERE account = ? AND id = ? AND sha256 = '' AND full_sha256 = ''",
		jobs.ParseNever, b.row.Account, res.ID)
}

// notedAtOnce bounds how many noted items become pending in one transaction.
const notedAtOnce = 2_000

const nextPass = `UPDATE items SET state = 'pending', attempts = 0, not_before = 0 WHERE job = ? AND id IN
	(SELECT id FROM items WHERE job = ? AND state = 'noted' ORDER BY seq LIMIT ?)`

// NextPass makes the next of the noted items pending, for their bodies to be
// brought, and reports whether there were any.
func (s *Store) NextPass(ctx context.Context, ref jobs.TaskRef) (more bool, err error) {
	_, err = s.owned(ctx, inLine, ref, "begin the next pass", func(ctx context.Context, x *tx, r *row) error {
		res, err := x.ExecContext(ctx, nextPass, r.num, r.num, notedAtOnce)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		more = n > 0
		return err
	})
	return more, err
}
