package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pressly/goose/v3"
	"go.uber.org/zap"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"headroom/jobs"
)

const (
	readers     = 4                // connections for reading, in one process
	busyTimeout = 15 * time.Second // longest wait for another process's transaction
	migrateWait = 10 * time.Second // longest wait for another process's migration
)

//go:embed migrations/sqlite/*.sql
var migrations embed.FS

// openDB prepares a pool of at most conns connections; the first use connects.
// With _txlock=immediate a transaction that will write takes the write lock
// when it begins, so it never fails half-way because another one wrote first.
func openDB(path string, conns int, pragmas ...string) (*sql.DB, error) {
	pragmas = append([]string{
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()),
		"journal_mode(WAL)",
		"synchronous(NORMAL)",
		"foreign_keys(1)",
		// Not in files of a folder that TMPDIR names, on a disk that nobody has an
		// eye on.
		"temp_store(MEMORY)",
	}, pragmas...)
	query := url.Values{"_txlock": {"immediate"}, "_pragma": pragmas}
	dsn := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: query.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", path, err)
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// migrate brings the schema up to date. Several processes may start at once on
// a new file: each migration is a transaction, so one of them wins and the
// others fail; they look again and find the work done.
func migrate(ctx context.Context, db *sql.DB, path string, log *zap.Logger) error {
	files, err := fs.Sub(migrations, "migrations/sqlite")
	if err != nil {
		return fmt.Errorf("read the embedded migrations: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files)
	if err != nil {
		return fmt.Errorf("read the embedded migrations: %w", err)
	}
	deadline := time.Now().Add(migrateWait)
	for {
		err := migrateOnce(ctx, provider, path, log)
		if err == nil || errors.Is(err, errNewer) || !worthRetry(err) || time.Now().After(deadline) {
			return explain(path, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("migrate store %s: %w", path, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

var errNewer = errors.New("the store was written by a newer version of headroom")

func migrateOnce(ctx context.Context, p *goose.Provider, path string, log *zap.Logger) error {
	have, want, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	if have > want {
		return fmt.Errorf("store %s has schema %d, this binary knows %d: %w; upgrade headroom or choose another path",
			path, have, want, errNewer)
	}
	if have == want {
		return nil
	}
	if _, err := p.Up(ctx); err != nil {
		return err
	}
	log.Info("store migrated", zap.String("path", path), zap.Int64("from", have), zap.Int64("to", want))
	return nil
}

// worthRetry tells a race with another process from a file that will never do.
func worthRetry(err error) bool {
	switch code(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_ERROR:
		return true // SQLITE_ERROR: "table exists already"
	}
	return false
}

// code is the primary result code of a SQLite error, or 0.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// explainPath says what is wrong with a database that cannot be made.
func explainPath(path string, err error) error {
	return fmt.Errorf("store %s cannot be written; check the owner of the file and its folder: %w", path, err)
}

// explain adds the next step to errors that are about the file.
func explain(path string, err error) error {
	if err == nil || errors.Is(err, errNewer) {
		return err
	}
	switch code(err) {
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("store %s is not a SQLite database; choose another path: %w", path, err)
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return explainPath(path, err)
	}
	if full(err) {
		return fmt.Errorf("store %s: %w", path, noRoom(filepath.Dir(path), err))
	}
	return fmt.Errorf("migrate store %s: %w", path, err)
}

// place returns the absolute path of the database, and refuses one that can never
// work.
func place(path string) (string, error) {
	if path == "" {
		return "", errors.New("no path for the store's database")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("store path %q: %w", path, err)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return "", fmt.Errorf("store path %s is a folder; name a file in it, for instance %s",
			path, filepath.Join(path, "headroom.db"))
	}
	return path, nil
}

// makeDatabase makes an empty file that only its owner may read, of which SQLite
// makes a database, with side files of the same mode. It never opens a file that
// exists: to close it again would end SQLite's locks on it.
func makeDatabase(path string) error {
	const private fs.FileMode = 0o600
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, private)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(private), f.Close()) // the umask may have taken away more
}

// noRoom makes an error that says that a disk is full a [jobs.ErrNoRoom] that names
// the folder. Others it returns as they are.
func noRoom(folder string, err error) error {
	if err == nil || errors.Is(err, jobs.ErrNoRoom) || !full(err) {
		return err
	}
	return fmt.Errorf("%w: make room in %s: %w", jobs.ErrNoRoom, folder, err)
}

// full reports whether an error says that a disk, or what its owner may have of it,
// is used up. SQLite has a code of its own for its file of shared memory.
func full(err error) bool {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return true
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code()&0xff == sqlite3.SQLITE_FULL || e.Code() == sqlite3.SQLITE_IOERR_SHMSIZE)
}

// noRoom is the function of this name for the database's folder.
func (w *writer) noRoom(err error) error { return noRoom(filepath.Dir(w.path), err) }
