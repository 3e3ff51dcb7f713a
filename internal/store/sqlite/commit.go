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
		if err := res.Validate(); err != nil {
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
	b.row.Count(res)
	if res.Outcome == jobs.ItemDeferred || res.Outcome == jobs.ItemFailed {
		return b.saveFailure(ctx, res, attempts)
	}
	if err := b.clearFailure(ctx, res.ID); err != nil {
		return err
	}
	if err := b.applyMessage(ctx, res); err != nil {
		return err
	}
	if res.Outcome == jobs.ItemStored && b.row.Kind == jobs.MailSync { // a backfill that has it on its list need not fetch it again
		return settleAll(ctx, b.tx, b.row, res.ID, jobs.ItemKnown)
	}
	return nil
}

// applyMessage writes what a result says of its message to the message's row.
func (b *batch) applyMessage(ctx context.Context, res jobs.Result) error {
	if res.Outcome == jobs.ItemSkipped {
		return nil
	}
	m, found, err := b.message(ctx, b.row.Account, res.ID)
	if err != nil || !found && res.Message == nil {
		return err
	}
	if res.Message != nil {
		m.Take(*res.Message)
	}
	switch res.Outcome {
	case jobs.ItemOversize:
		m.Oversize()
	case jobs.ItemGone:
		m.NotFound(b.row.Kind, b.moment())
	}
	return b.saveMessage(ctx, m)
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

// message returns the row of a message of whatever kind. Found is false, and the row
// that of an unknown message, if there is none.
func (x *tx) message(ctx context.Context, account, id string) (m jobs.Message, found bool, err error) {
	err = scanMessage(x.QueryRowContext(ctx, selectMessage+"WHERE account = ? AND id = ?", account, id).Scan, &m)
	if errors.Is(err, sql.ErrNoRows) {
		return jobs.UnknownMessage(account, id), false, nil
	}
	return m, err == nil, err
}

// History ids are stored as signed numbers; Google's are far below 2^63.
const upsertMessage = `INSERT INTO messages (account, id, thread_id, history_id, internal_date, labels, size, sha256,
		subject, parse_status, parse_error, deleted_at, stub, full_sha256, full_size)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (account, id) DO UPDATE SET thread_id = excluded.thread_id, history_id = excluded.history_id,
		internal_date = excluded.internal_date, labels = excluded.labels, size = excluded.size, sha256 = excluded.sha256,
		subject = excluded.subject, parse_status = excluded.parse_status, parse_error = excluded.parse_error,
		deleted_at = excluded.deleted_at, stub = excluded.stub, full_sha256 = excluded.full_sha256, full_size = excluded.full_size`

// saveMessage writes a message's row.
func (x *tx) saveMessage(ctx context.Context, m jobs.Message) error {
	if m.Labels == nil {
		m.Labels = []string{}
	}
	labels, err := json.Marshal(m.Labels)
	if err != nil {
		return fmt.Errorf("encode labels: %w", err)
	}
	stub := notStub
	switch {
	case m.BodyWanted:
		stub = stubWanted
	case m.Stub:
		stub = stubUnwanted
	}
	_, err = x.ExecContext(ctx, upsertMessage, m.Account, m.ID, m.ThreadID, int64(m.HistoryID), m.Received().UnixMilli(), string(labels),
		m.Size, m.SHA256, clean(m.Subject), m.ParseStatus, clean(m.ParseError), toMillis(m.DeletedAt), stub, m.FullSHA256, m.FullSize)
	return err
}
