package sqlite

import (
	"context"
	"database/sql"
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
