// Package sqlite keeps what must not be lost: accounts, jobs with their
// checkpoints and failure lists, and the rows of stored messages, which name their
// bodies by their hash. It decides nothing about the work; it makes sure that a
// job's state and the records that the job produced change together.
//
// Rows live in one SQLite database, which any number of processes may open at
// once.
//
// Invariants:
//   - Whoever works on a job holds a lease, taken with [Store.Claim]. Every
//     write that belongs to the work names the epoch and slice of that lease
//     and is refused with [jobs.ErrStale] when the job has gone on.
//   - Leases compare on the store's clock, which is that of the host: never on a moment
//     that a caller read.
//   - Counters in a job's row change in the transaction that changes what they
//     count, and are never computed by counting rows.
//   - A message row is written after its blob, so every row's blob exists.
//
// Readers never wait for writers. The writers of one process share transactions
// of a few milliseconds; those of several wait for each other's.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"headroom/jobs"
)

// Options says where a [Store] lives. Path is required.
type Options struct {
	Path string      // the database file, in a folder that exists; made when absent
	Log  *zap.Logger // nothing is logged if nil

	Watched []jobs.WatchKind // what workers have Google tell of, which schedules see to

	// NowFunc is the store's clock, which all processes that share the database must
	// have in common; time.Now if nil.
	NowFunc func() time.Time

	// Existing says that the database must be there.
	Existing bool
}

// Store is an open store. It is safe for concurrent use, also with other
// processes that have the same file open.
type Store struct {
	writer *sql.DB // one connection, line's
	line   *writer // where writers of one process wait, in line and not by polling
	reader *sql.DB
	polls  polls // of reader
	path   string
	log    *zap.Logger

	watched []jobs.WatchKind
	now     func() time.Time
}

// clock is the store's clock, in milliseconds since 1970.
func (s *Store) clock() int64 { return s.now().UnixMilli() }

// Open opens the store at opts.Path, making it or bringing its schema up to
// date first. Of several processes that do so at once, one does the work. The
// error says what is wrong with the path, when that is the cause, and is
// [fs.ErrNotExist] for an Existing database that is none. Close the store when done.
func Open(ctx context.Context, opts Options) (_ *Store, err error) {
	if opts.Log == nil {
		opts.Log = zap.NewNop()
	}
	if opts.NowFunc == nil {
		opts.NowFunc = time.Now
	}
	path, err := place(opts.Path)
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, log: opts.Log.Named("store"), watched: opts.Watched, now: opts.NowFunc}
	if opts.Existing {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("open store: %w", err)
		}
	} else if err := makeDatabase(path); err != nil {
		return nil, noRoom(filepath.Dir(path), explainPath(path, err))
	}
	if s.writer, err = openDB(path, 1); err != nil {
		return nil, err
	}
	if err := migrate(ctx, s.writer, path, s.log); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.line = newWriter(context.WithoutCancel(ctx), s.writer, path, s.clock, s.log)
	if s.reader, err = openDB(path, readers, "query_only(1)"); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.polls.db = s.reader
	return s, nil
}

// Close closes the store, after the writes that are under way. Whatever was
// committed is safe.
func (s *Store) Close() error {
	if s.line != nil {
		s.line.close()
	}
	errs := []error{s.polls.close()}
	for _, db := range []*sql.DB{s.reader, s.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// Ping reports whether the database can be read.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	if err := s.reader.QueryRowContext(ctx, "SELECT COUNT(*) FROM jobs WHERE id = ''").Scan(&one); err != nil {
		return fmt.Errorf("read the store: %w", err)
	}
	return nil
}

// An Identity tells a store from others that share a queue with it by mistake.
type Identity struct {
	ID   string // made with the store; a copy or backup has the same
	Path string // of the database, absolute
	File string // of the database on its disk, "" where the system does not tell: a copy has another
}

// Identity returns what tells this store from others.
func (s *Store) Identity(ctx context.Context) (Identity, error) {
	i := Identity{Path: s.path}
	if err := s.reader.QueryRowContext(ctx, "SELECT id FROM store_id").Scan(&i.ID); err != nil {
		return Identity{}, fmt.Errorf("read the store's id: %w", err)
	}
	info, err := os.Stat(s.path)
	if err != nil {
		return Identity{}, fmt.Errorf("read the store's file: %w", err)
	}
	i.File = fileOf(info)
	return i, nil
}
