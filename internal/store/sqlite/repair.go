package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"headroom/jobs"
)

// FetchAgain forgets bodies of one account that are lost, so that nothing finds them
// stored, and has backfills of the account fetch them again, as they fetch all others.
// It returns these, which the caller puts on the queue, and how many messages there
// are. Those that no backfill can fetch are in left, with the reason: the next one that
// lists them fetches them.
func (s *Store) FetchAgain(ctx context.Context, account string, lost []Body) (resumed []jobs.Job, fetched int, left map[string]string, err error) {
	done, left, byID := map[string]bool{}, map[string]string{}, map[string]jobs.Job{}
	for len(lost) > 0 {
		some := lost[:min(len(lost), retryAtOnce)]
		lost = lost[len(some):]
		err = s.write(ctx, func(ctx context.Context, x *tx) error {
			backfills, err := x.backfills(ctx, normal(account))
			if err != nil {
				return err
			}
			touched := map[*row]bool{}
			for _, b := range some {
				if err := x.forget(ctx, b); err != nil {
					return fmt.Errorf("message %q: %w", b.Message, err)
				}
				key := b.Format + " " + b.Message
				if done[key] {
					continue
				}
				r, reason, err := x.fetcher(ctx, backfills, b)
				if err == nil && r != nil {
					err = x.fetchAgain(ctx, r, b.Message)
					touched[r], done[key] = true, true
				} else {
					left[b.Message] = reason
				}
				if err != nil {
					return fmt.Errorf("message %q: %w", b.Message, err)
				}
			}
			for r := range touched {
				r.Retry()
				if err := x.save(ctx, r); err != nil {
					return err
				}
				byID[r.ID] = r.Job
			}
			return nil
		})
		if err != nil {
			return nil, 0, left, fmt.Errorf("fetch messages of %s again: %w", account, err)
		}
	}
	return slices.Collect(maps.Values(byID)), len(done), left, nil
}

// backfills loads all backfills of an account, the whole one first.
func (x *tx) backfills(ctx context.Context, account string) ([]*row, error) {
	return rows(ctx, x, scanRow, selectJob+"WHERE account = ? AND kind = ? ORDER BY LENGTH(id), id", account, jobs.MailBackfill)
}

// fetcher chooses the backfill that fetches a body again: one of the body's format
// that has the message on its list, or else one of all mail. It returns nil and why, if
// there is none.
func (x *tx) fetcher(ctx context.Context, backfills []*row, b Body) (chosen *row, reason string, err error) {
	reason = fmt.Sprintf("no backfill of the account brings it in format %s; start one", b.Format)
	for _, r := range backfills {
		if (r.Filter.Bodies() == jobs.FormatFull) != (b.Format == "full") {
			continue
		}
		listed, err := x.exists(ctx, "SELECT 1 FROM items WHERE job = ? AND id = ?", r.num, b.Message)
		if err != nil {
			return nil, "", err
		}
		if !listed && r.ID != jobs.BackfillID(r.Account) {
			continue
		}
		if r.CanRetry() != nil {
			reason = fmt.Sprintf("%s is %s; start it again", r.ID, r.State)
			continue
		}
		if listed {
			return r, "", nil
		}
		if chosen == nil {
			chosen = r
		}
	}
	return chosen, reason, nil
}

// forget makes a message one whose body is not there yet.
func (x *tx) forget(ctx context.Context, b Body) error {
	query, args := "UPDATE messages SET sha256 = '' WHERE account = ? AND id = ? AND sha256 = ?", []any{b.Account, b.Message, b.SHA256}
	switch {
	case b.Part != "":
		_, err := x.ExecContext(ctx, "DELETE FROM attachments WHERE account = ? AND message = ? AND part = ? AND sha256 = ?",
			b.Account, b.Message, b.Part, b.SHA256)
		if err != nil {
			return err
		}
		query, args = "UPDATE messages SET full_sha256 = '' WHERE account = ? AND id = ?", []any{b.Account, b.Message}
	case b.Format == "full":
		query = "UPDATE messages SET full_sha256 = '' WHERE account = ? AND id = ? AND full_sha256 = ?"
	}
	_, err := x.ExecContext(ctx, query, args...)
	return err
}

// fetchAgain makes an item pending, whatever became of it, or adds it to the listing.
func (x *tx) fetchAgain(ctx context.Context, r *row, id string) error {
	var state string
	var seq int64
	err := x.QueryRowContext(ctx, "SELECT state, seq FROM items WHERE job = ? AND id = ?", r.num, id).Scan(&state, &seq)
	unlisted := errors.Is(err, sql.ErrNoRows)
	if err != nil && !unlisted || state == "pending" {
		return err
	}
	if unlisted || seq == 0 {
		r.Progress.Listed++
		r.Progress.Expected = max(r.Progress.Expected, r.Progress.Listed)
		_, err := x.ExecContext(ctx, `INSERT INTO items (job, id, seq, state) VALUES (?, ?, ?, 'pending')
			ON CONFLICT (job, id) DO UPDATE SET seq = excluded.seq, state = 'pending', attempts = 0, not_before = 0`, r.num, id, r.Progress.Listed)
		return err
	}
	p := &r.Progress
	counters := map[string]*int64{
		string(jobs.ItemStored): &p.Stored, string(jobs.ItemKnown): &p.Known, string(jobs.ItemGone): &p.Gone,
		string(jobs.ItemSkipped): &p.Skipped, string(jobs.ItemOversize): &p.Oversize, string(jobs.ItemFailed): &p.Failed,
	}
	if n := counters[state]; n != nil && *n > 0 {
		*n--
	}
	_, err = x.ExecContext(ctx, "UPDATE items SET state = 'pending', attempts = 0, not_before = 0 WHERE job = ? AND id = ?", r.num, id)
	return err
}

// A Body is the body of a message, or of one of its attachments, that a row refers to.
type Body struct {
	Account string `json:"account"`
	Message string `json:"message"`
	Format  string `json:"format"`         // raw or full
	Part    string `json:"part,omitempty"` // of an attachment
	SHA256  string `json:"sha256"`
}

// allBodies lists what rows refer to.
const allBodies = `SELECT account, id AS message, 'raw' AS format, '' AS part, sha256 AS sha FROM messages WHERE sha256 <> ''
	UNION ALL SELECT account, id, 'full', '', full_sha256 FROM messages WHERE full_sha256 <> ''
	UNION ALL SELECT account, message, 'full', part, sha256 FROM attachments`

// BodySums returns the SHA-256 of every body that a row refers to, in order, each once.
func (s *Store) BodySums(ctx context.Context) ([]string, error) {
	sums, err := list(ctx, s, func(scan func(...any) error, sum *string) error { return scan(sum) },
		"SELECT DISTINCT sha FROM ("+allBodies+") AS bodies ORDER BY sha")
	if err != nil {
		return nil, fmt.Errorf("list the bodies: %w", err)
	}
	return sums, nil
}

// BodiesOf returns the bodies of some sums, one for each row that refers to it.
func (s *Store) BodiesOf(ctx context.Context, of func(sum string) bool) ([]Body, error) {
	rows, err := s.reader.QueryContext(ctx, allBodies)
	if err != nil {
		return nil, fmt.Errorf("list the bodies: %w", err)
	}
	defer rows.Close()
	var found []Body
	for rows.Next() {
		var b Body
		if err := rows.Scan(&b.Account, &b.Message, &b.Format, &b.Part, &b.SHA256); err != nil {
			return nil, fmt.Errorf("list the bodies: %w", err)
		}
		if of(b.SHA256) {
			found = append(found, b)
		}
	}
	return found, rows.Err()
}
