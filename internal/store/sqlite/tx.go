package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"headroom/jobs"
)

// tx is a transaction with the moment on the store's clock at which it began
// or, of one that [writer] shares among several, at which this one's part did.
type tx struct {
	querier
	now int64
}

// moment is the store's clock.
func (x *tx) moment() time.Time { return fromMillis(x.now) }

// after is the moment d from now.
func (x *tx) after(d time.Duration) time.Time { return fromMillis(x.now + d.Milliseconds()) }

// write runs fn in a transaction that holds the database's write lock, and
// undoes what it did if it fails. Fn must use the context that it is given.
func (s *Store) write(ctx context.Context, fn func(context.Context, *tx) error) error {
	return s.line.do(ctx, inLine, fn)
}

// read runs fn on one snapshot of the database, without any lock.
func (s *Store) read(ctx context.Context, fn func(*tx) error) error {
	t, err := s.reader.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	defer t.Rollback() // nothing was written
	return fn(&tx{querier: t, now: s.clock()})
}

// toMillis is a moment as the database keeps it.
func toMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// fromMillis is the inverse of toMillis, for moments that can be written.
func fromMillis(ms int64) time.Time {
	if ms == 0 || !inWorld(ms) {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// noDate is what is stored for a date that is not known: Go's zero time.
var noDate = time.Time{}.UnixMilli()

// The last moment of a year of four digits: JSON knows no later one.
var worldEnd = time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC).UnixMilli()

// inWorld reports whether a moment can be written as one. What a stranger gave may
// be none.
func inWorld(ms int64) bool { return ms > noDate && ms <= worldEnd }

// millis scans a moment.
type millis struct{ t *time.Time }

// Scan implements [sql.Scanner].
func (m millis) Scan(src any) error {
	ms, ok := src.(int64)
	if !ok {
		return fmt.Errorf("a time is stored as %T, want milliseconds", src)
	}
	*m.t = fromMillis(ms)
	return nil
}

// clean makes text from outside fit for any database: valid UTF-8, without NUL.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// notFound turns a query's "no rows" into [jobs.ErrNotFound].
func notFound(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return jobs.ErrNotFound
	}
	return err
}

// page is a limit that is safe to ask the database for.
func page(limit int) int {
	if limit <= 0 {
		return DefaultPage
	}
	return limit
}

// DefaultPage is how many rows a listing returns when the limit is zero or less.
const DefaultPage = 500

// row is a job's row with its internal key.
type row struct {
	num int64
	jobs.Job
}

// job is the job of a row, or nil.
func (r *row) job() *jobs.Job {
	if r == nil {
		return nil
	}
	return &r.Job
}

// jobColumns lists the columns of a job's row that change, in the order of
// row.values; fixedColumns those that do not, in the order of row.fixed.
var (
	fixedColumns = []string{"num", "id", "kind", "account", "filter", "created_at"}
	jobColumns   = []string{
		"project", "state", "wanted", "epoch", "slice", "history_id", "page_token", "listed_all", "cut", "list_before",
		"expected", "listed", "noted", "stored", "known", "gone", "skipped", "oversize", "failed", "parse_failed", "bytes",
		"waiting_for", "wait_until", "last_error", "refusals", "failures", "requeued",
		"lease_until", "started_at", "finished_at", "updated_at", "place", "units", "failing_since", "quota_wait",
	}
	selectJob = "SELECT " + strings.Join(fixedColumns, ", ") + ", " + strings.Join(jobColumns, ", ") + " FROM jobs "
	updateJob = "UPDATE jobs SET live = ?, " + strings.Join(jobColumns, " = ?, ") + " = ? WHERE num = ?"
)

// scan reads a row of selectJob.
func (r *row) scan(scan func(...any) error) error {
	c, p := &r.Checkpoint, &r.Progress
	var history int64
	err := scan(&r.num, &r.ID, &r.Kind, &r.Account, jsonText{&r.Filter}, millis{&r.CreatedAt},
		&r.Project, &r.State, &r.Wanted, &r.Epoch, &r.Slice, &history, &c.PageToken, &c.Listed, &c.Cut, millis{&c.Before},
		&p.Expected, &p.Listed, &p.Noted, &p.Stored, &p.Known, &p.Gone, &p.Skipped, &p.Oversize, &p.Failed, &p.ParseFailed, &p.Bytes,
		&r.WaitingFor, millis{&r.WaitUntil}, &r.LastError, &r.Refusals, &r.Failures, &r.Requeued,
		millis{&r.LeaseUntil}, millis{&r.StartedAt}, millis{&r.FinishedAt}, millis{&r.UpdatedAt}, &r.Admission, &r.Units, millis{&r.FailingSince},
		&r.QuotaWait)
	c.HistoryID = uint64(history)
	return err
}

// values are the row's values in the order of jobColumns.
func (r *row) values() []any {
	c, p := r.Checkpoint, r.Progress
	return []any{
		r.Project, r.State, r.Wanted, r.Epoch, r.Slice, int64(c.HistoryID), c.PageToken, c.Listed, c.Cut, toMillis(c.Before),
		p.Expected, p.Listed, p.Noted, p.Stored, p.Known, p.Gone, p.Skipped, p.Oversize, p.Failed, p.ParseFailed, p.Bytes,
		r.WaitingFor, toMillis(r.WaitUntil), r.LastError, r.Refusals, r.Failures, r.Requeued,
		toMillis(r.LeaseUntil), toMillis(r.StartedAt), toMillis(r.FinishedAt), toMillis(r.UpdatedAt), r.Admission, r.Units, toMillis(r.FailingSince), r.QuotaWait,
	}
}

// jsonText reads a column that holds JSON into what it points to.
type jsonText struct{ to any }

// Scan implements [sql.Scanner].
func (j jsonText) Scan(v any) error {
	switch text := v.(type) {
	case string:
		return json.Unmarshal([]byte(text), j.to)
	case []byte:
		return json.Unmarshal(text, j.to)
	}
	return fmt.Errorf("%T is no JSON text", v)
}

// load reads the row of a job, or fails with [jobs.ErrNotFound].
func (x *tx) load(ctx context.Context, id string) (*row, error) {
	r := new(row)
	if err := r.scan(x.QueryRowContext(ctx, selectJob+"WHERE id = ?", id).Scan); err != nil {
		return nil, fmt.Errorf("job %q: %w", id, notFound(err))
	}
	return r, nil
}

// save writes what may have changed in r.
func (x *tx) save(ctx context.Context, r *row) error {
	r.Touch(x.moment())
	args := append([]any{r.State.Live()}, r.values()...)
	if _, err := x.ExecContext(ctx, updateJob, append(args, r.num)...); err != nil {
		return fmt.Errorf("save job %q: %w", r.ID, err)
	}
	if r.ForgetsAsk() {
		return x.forgetAsk(ctx, r)
	}
	return nil
}

// owned runs fn for the owner of the slice that ref names, in one transaction,
// and saves what fn made of the job's row. It fails with [jobs.ErrStale] before
// fn when ref is no longer the slice that holds the job's lease.
func (s *Store) owned(ctx context.Context, u urgency, ref jobs.TaskRef, verb string, fn func(context.Context, *tx, *row) error) (jobs.Job, error) {
	var job jobs.Job
	err := s.line.do(ctx, u, func(ctx context.Context, x *tx) error {
		r, err := x.load(ctx, ref.Job)
		if err != nil {
			return err
		}
		if err := r.OwnedBy(ref); err != nil {
			return err
		}
		if err := fn(ctx, x, r); err != nil {
			return err
		}
		if err := x.save(ctx, r); err != nil {
			return err
		}
		job = r.Job
		return nil
	})
	if err != nil {
		return jobs.Job{}, fmt.Errorf("%s of %s: %w", verb, ref.TaskID(), err)
	}
	return job, nil
}

// peek runs fn for the owner of a slice without writing anything.
func (s *Store) peek(ctx context.Context, ref jobs.TaskRef, fn func(*tx, *row) error) error {
	return s.read(ctx, func(x *tx) error {
		r, err := x.load(ctx, ref.Job)
		if err != nil {
			return err
		}
		if err := r.OwnedBy(ref); err != nil {
			return err
		}
		return fn(x, r)
	})
}
