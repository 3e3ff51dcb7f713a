package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"headroom/jobs"
)

const selectMessage = `SELECT account, id, thread_id, history_id, internal_date, labels, size, sha256,
	subject, parse_status, parse_error, deleted_at, stub, full_sha256, full_size FROM messages `

// stored is the condition for a message that is there and has been read. Tombstones and
// stubs of live sync are not.
const stored = "deleted_at = 0 AND stub = 0"

// Message returns the row of one stored message, or [jobs.ErrNotFound], also when
// it was deleted.
func (s *Store) Message(ctx context.Context, account, id string) (jobs.Message, error) {
	m, err := s.Trace(ctx, account, id)
	if err == nil && (m.Stub || !m.DeletedAt.IsZero()) {
		return jobs.Message{}, fmt.Errorf("message %q of %s: %w", id, account, jobs.ErrNotFound)
	}
	if err != nil {
		return m, err
	}
	if m.FullSHA256 != "" {
		if m.Attachments, err = s.Attachments(ctx, m.Account, m.ID); err != nil {
			return m, err
		}
	}
	one := []jobs.Message{m}
	err = s.nameLabels(ctx, m.Account, one)
	return one[0], err
}

// Trace returns whatever is known of a message: its row, or that of a tombstone or
// a stub; or [jobs.ErrNotFound].
func (s *Store) Trace(ctx context.Context, account, id string) (jobs.Message, error) {
	var m jobs.Message
	row := s.reader.QueryRowContext(ctx, selectMessage+"WHERE account = ? AND id = ?", normal(account), id)
	if err := scanMessage(row.Scan, &m); err != nil {
		return jobs.Message{}, fmt.Errorf("message %q of %s: %w", id, account, notFound(err))
	}
	return m, nil
}

// Messages lists the stored messages of an account by id, from those after
// afterID, at most limit ([DefaultPage] if zero or less).
func (s *Store) Messages(ctx context.Context, account, afterID string, limit int) ([]jobs.Message, error) {
	return list(ctx, s, scanMessage, selectMessage+"WHERE account = ? AND id > ? AND "+stored+" ORDER BY id LIMIT ?",
		normal(account), afterID, page(limit))
}

// CountMessages counts the stored messages of an account. It reads an index
// from end to end, so it is not for loops.
func (s *Store) CountMessages(ctx context.Context, account string) (int64, error) {
	var n int64
	err := s.reader.QueryRowContext(ctx, "SELECT COUNT(*) FROM messages WHERE account = ? AND "+stored, normal(account)).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count messages of %s: %w", account, err)
	}
	return n, nil
}

// StoredID returns the id of some stored message of an account, each time
// another where there are several, or [jobs.ErrNotFound].
func (s *Store) StoredID(ctx context.Context, account string) (string, error) {
	var id string
	err := s.read(ctx, func(x *tx) (err error) {
		// Ids of Google's are hexadecimal, so this is somewhere in their midst.
		from := fmt.Sprintf("%04x", rand.IntN(1<<16))
		if id, err = x.storedID(ctx, normal(account), from); errors.Is(err, jobs.ErrNotFound) {
			id, err = x.storedID(ctx, normal(account), "")
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("a stored message of %s: %w", account, err)
	}
	return id, nil
}

// storedID returns the first id from from on, or [jobs.ErrNotFound].
func (x *tx) storedID(ctx context.Context, account, from string) (id string, err error) {
	err = x.QueryRowContext(ctx, "SELECT id FROM messages WHERE account = ? AND id >= ? AND (sha256 <> '' OR full_sha256 <> '') AND "+stored+" ORDER BY id LIMIT 1", account, from).Scan(&id)
	return id, notFound(err)
}

// hasMessages reports whether any message of an account is known by more than its
// history, with or without its body.
func (x *tx) hasMessages(ctx context.Context, account string) (bool, error) {
	return x.exists(ctx, "SELECT 1 FROM messages WHERE account = ? AND "+stored+" LIMIT 1", account)
}

func scanMessage(scan func(...any) error, m *jobs.Message) error {
	var history, date, stub int64
	var labels string
	err := scan(&m.Account, &m.ID, &m.ThreadID, &history, &date, &labels, &m.Size, &m.SHA256,
		&m.Subject, &m.ParseStatus, &m.ParseError, millis{&m.DeletedAt}, &stub, &m.FullSHA256, &m.FullSize)
	if err != nil {
		return err
	}
	m.HistoryID, m.Stub, m.BodyWanted = uint64(history), stub != notStub, stub == stubWanted
	switch {
	case inWorld(date):
		m.InternalDate = time.UnixMilli(date).UTC()
	case date != noDate:
		m.InternalDateMS = date
	}
	if err := json.Unmarshal([]byte(labels), &m.Labels); err != nil {
		return fmt.Errorf("labels of message %q: %w", m.ID, err)
	}
	return nil
}

// The values of the column stub.
const (
	notStub      = iota // nothing is missing, or a backfill has the rest to bring
	stubUnwanted        // in spam or trash, or deleted
	stubWanted          // its body has yet to come
)

// SaveLabels records the labels that a mailbox has now, in place of those before.
func (s *Store) SaveLabels(ctx context.Context, ref jobs.TaskRef, labels []jobs.Label) error {
	_, err := s.owned(ctx, inLine, ref, "save labels", func(ctx context.Context, x *tx, r *row) error {
		before, err := labelNames(ctx, x, r.Account)
		if err != nil {
			return err
		}
		now := map[string]string{}
		for _, l := range labels {
			now[l.ID] = clean(l.Name)
		}
		if maps.Equal(before, now) {
			return nil
		}
		if _, err := x.ExecContext(ctx, "DELETE FROM labels WHERE account = ?", r.Account); err != nil {
			return err
		}
		for id, name := range now {
			if _, err := x.ExecContext(ctx, "INSERT INTO labels (account, id, name) VALUES (?, ?, ?)", r.Account, id, name); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// Labels returns the names of a mailbox's labels by their ids, as the last backfill
// or sync read them.
func (s *Store) Labels(ctx context.Context, account string) (map[string]string, error) {
	names, err := labelNames(ctx, s.reader, normal(account))
	if err != nil {
		return nil, fmt.Errorf("labels of %s: %w", account, err)
	}
	return names, nil
}

func labelNames(ctx context.Context, q querier, account string) (map[string]string, error) {
	rows, err := q.QueryContext(ctx, "SELECT id, name FROM labels WHERE account = ?", account)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names := map[string]string{}
	for rows.Next() {
		var id, name string
		if err := rows.Scan(&id, &name); err != nil {
			return nil, err
		}
		names[id] = name
	}
	return names, rows.Err()
}

// nameLabels gives messages of an account the names of their labels. A message of
// which no label's name is known gets none.
func (s *Store) nameLabels(ctx context.Context, account string, messages []jobs.Message) error {
	if len(messages) == 0 {
		return nil
	}
	names, err := s.Labels(ctx, account)
	if err != nil || len(names) == 0 {
		return err
	}
	for i := range messages {
		m := &messages[i]
		for _, id := range m.Labels {
			m.LabelNames = append(m.LabelNames, names[id])
		}
	}
	return nil
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
