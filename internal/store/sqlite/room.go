package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"headroom/jobs"
)

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
