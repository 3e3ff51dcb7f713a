package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"headroom/jobs"
)

// Commit records what became of a batch of items, all or nothing, and returns
// the job with its new counters. Of a message and the row that is there, labels
// and deletion are those of the newer by history id; so a backfill never undoes
// what live sync has written. A deferred item is pending again from RetryAt on; a
// failed one goes into the failure list; any other outcome takes the item out
// of that list. An item that had its outcome before keeps it. Whatever ends an
// item is progress, so it ends a row of refusals and failures.
func (s *Store) Commit(ctx context.Context, ref jobs.TaskRef, results []jobs.Result) (jobs.Job, error) {
	for _, res := range results {
		if err := valid(res); err != nil {
			return jobs.Job{}, fmt.Errorf("commit %s: %w", ref.TaskID(), err)
		}
	}
	return s.owned(ctx, inLine, ref, "commit", func(ctx context.Context, x *tx, r *row) error {
		b := &batch{tx: x, row: r}
		for _, res := range results {
			if err := b.apply(ctx, res); err != nil {
				return fmt.Errorf("item %q: %w", res.ID, err)
			}
		}
		return nil
	})
}

// valid checks that a result carries what its outcome needs.
func valid(res jobs.Result) error {
	switch res.Outcome {
	case jobs.ItemGone, jobs.ItemSkipped:
		return nil
	case jobs.ItemOversize:
		if res.Message != nil && res.Message.ID != res.ID {
			return fmt.Errorf("item %q is oversize as message %q", res.ID, res.Message.ID)
		}
		return nil
	case jobs.ItemStored:
		if res.Message == nil {
			return fmt.Errorf("item %q is stored without a message", res.ID)
		}
		if res.Message.ID != res.ID {
			return fmt.Errorf("item %q is stored as message %q", res.ID, res.Message.ID)
		}
		if res.Message.FullSHA256 != "" {
			return jobs.CheckSum(res.Message.FullSHA256)
		}
		return jobs.CheckSum(res.Message.SHA256)
	case jobs.ItemNoted:
		if res.Message == nil || res.Message.ID != res.ID {
			return fmt.Errorf("item %q is noted without its message", res.ID)
		}
		return nil
	case jobs.ItemFailed, jobs.ItemDeferred:
		if res.Failure == nil {
			return fmt.Errorf("item %q is %s without a failure", res.ID, res.Outcome)
		}
		return nil
	}
	return fmt.Errorf("item %q has the unknown outcome %q", res.ID, res.Outcome)
}

// batch is one Commit: a transaction on a job.
type batch struct {
	*tx
	row *row
}

func (b *batch) exec(ctx context.Context, query string, args ...any) error {
	_, err := b.ExecContext(ctx, query, args...)
	return err
}

// apply records one result.
func (b *batch) apply(ctx context.Context, res jobs.Result) error {
	attempts, fresh, err := b.settle(ctx, res)
	if err != nil || !fresh {
		return err
	}
	p := &b.row.Progress
	switch res.Outcome {
	case jobs.ItemDeferred:
		return b.saveFailure(ctx, res, attempts)
	case jobs.ItemFailed:
		p.Failed++
		err = b.saveFailure(ctx, res, attempts)
	case jobs.ItemGone:
		p.Gone++
		err = errors.Join(b.bury(ctx, res.ID), b.clearFailure(ctx, res.ID))
	case jobs.ItemSkipped:
		p.Skipped++
		err = b.clearFailure(ctx, res.ID)
	case jobs.ItemOversize:
		p.Oversize++
		err = errors.Join(b.skipBody(ctx, res), b.clearFailure(ctx, res.ID))
	case jobs.ItemNoted:
		p.Noted++
		err = errors.Join(b.noteMessage(ctx, *res.Message), b.clearFailure(ctx, res.ID))
	case jobs.ItemStored:
		p.Stored++
		p.Bytes += res.Message.Brought()
		if res.Message.ParseStatus == jobs.ParseFailed {
			p.ParseFailed++
		}
		err = errors.Join(b.saveMessage(ctx, *res.Message), b.clearFailure(ctx, res.ID))
		if b.row.Kind == jobs.MailSync { // a backfill that has it on its list need not fetch it again
			err = errors.Join(err, settleAll(ctx, b.tx, b.row, res.ID, known))
		}
	}
	b.row.Progressed()
	return err
}

const settleItem = `UPDATE items SET state = ?, attempts = attempts + ?, not_before = ?, noted = noted OR ?
	WHERE job = ? AND id = ? AND state = 'pending' RETURNING attempts`

// settle moves an item to the state of its outcome. It reports the failed
// attempts so far, and whether the item was still pending.
func (b *batch) settle(ctx context.Context, res jobs.Result) (attempts int, fresh bool, err error) {
	state, more, notBefore := string(res.Outcome), 0, int64(0)
	switch res.Outcome {
	case jobs.ItemFailed:
		more = 1
	case jobs.ItemDeferred:
		// The caller's moment is carried over to the store's clock.
		state, more, notBefore = "pending", 1, b.now
		if !res.RetryAt.IsZero() {
			notBefore = max(1, b.now+time.Until(res.RetryAt).Milliseconds())
		}
	}
	err = b.QueryRowContext(ctx, settleItem, state, more, notBefore, res.Outcome == jobs.ItemNoted, b.row.num, res.ID).Scan(&attempts)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, b.checkListed(ctx, res.ID)
	}
	return attempts, err == nil, err
}

// checkListed tells an item that is done from one that was never listed.
func (b *batch) checkListed(ctx context.Context, id string) error {
	var one int
	err := b.QueryRowContext(ctx, "SELECT 1 FROM items WHERE job = ? AND id = ?", b.row.num, id).Scan(&one)
	return notFound(err)
}

const upsertFailure = `INSERT INTO failures (job, id, phase, class, reason, attempts, given_up, first_at, last_at)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (job, id) DO UPDATE SET phase = excluded.phase, class = excluded.class, reason = excluded.reason,
		attempts = excluded.attempts, given_up = excluded.given_up, last_at = excluded.last_at`

func (b *batch) saveFailure(ctx context.Context, res jobs.Result, attempts int) error {
	f := res.Failure
	return b.exec(ctx, upsertFailure, b.row.num, res.ID, f.Phase, f.Class, clean(f.Reason),
		attempts, res.Outcome == jobs.ItemFailed, b.now, b.now)
}

func (b *batch) clearFailure(ctx context.Context, id string) error {
	return b.exec(ctx, "DELETE FROM failures WHERE job = ? AND id = ?", b.row.num, id)
}

// newestLabels and liftTombstone are what a message's row becomes when Google has
// given the message. Labels are those with the higher history id. A tombstone is
// lifted, whatever the ids say: once a message is known to be deleted, its items are
// done with, so whoever gets it after all has asked for it later. History ids are
// compared as signed numbers; Google's are far below 2^63.
const (
	newestLabels = `labels = CASE WHEN excluded.history_id >= messages.history_id OR messages.deleted_at <> 0
			THEN excluded.labels ELSE messages.labels END,
		history_id = CASE WHEN excluded.history_id > messages.history_id THEN excluded.history_id ELSE messages.history_id END`
	liftTombstone = `deleted_at = 0`
)

// A body is taken where there was none, however old: it never changes.
const upsertMessage = `INSERT INTO messages (account, id, thread_id, history_id, internal_date, labels, size, sha256,
		subject, parse_status, parse_error)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (account, id) DO UPDATE SET thread_id = excluded.thread_id, internal_date = excluded.internal_date,
		size = excluded.size, sha256 = excluded.sha256, subject = excluded.subject,
		parse_status = excluded.parse_status, parse_error = excluded.parse_error, stub = 0,
		` + newestLabels + `, ` + liftTombstone + `
	WHERE excluded.history_id >= messages.history_id OR messages.sha256 = '' OR messages.deleted_at <> 0`

func (b *batch) saveMessage(ctx context.Context, m jobs.Message) error {
	if m.FullSHA256 != "" {
		return b.saveFull(ctx, m)
	}
	if m.Labels == nil {
		m.Labels = []string{}
	}
	labels, err := json.Marshal(m.Labels)
	if err != nil {
		return fmt.Errorf("encode labels: %w", err)
	}
	return b.exec(ctx, upsertMessage, b.row.Account, m.ID, m.ThreadID, int64(m.HistoryID), m.InternalDate.UnixMilli(),
		string(labels), m.Size, m.SHA256, clean(m.Subject), m.ParseStatus, clean(m.ParseError))
}

// bury makes a tombstone of a row that has no body and never will. A message that
// only the mailbox's history has named is left to live sync, which asks for it a few
// times.
func (b *batch) bury(ctx context.Context, id string) error {
	return b.exec(ctx, `UPDATE messages SET deleted_at = ?, stub = 1 WHERE account = ? AND id = ? AND sha256 = '' AND full_sha256 = ''
		AND deleted_at = 0 AND (stub = 0 OR ?)`, b.now, b.row.Account, id, b.row.Kind == jobs.MailSync)
}
