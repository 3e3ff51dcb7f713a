package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"
)

// A Writer takes one body. It is used by one goroutine at a time.
type Writer interface {
	io.Writer
	// Commit keeps what was written and returns its SHA-256 in lower-case hex. The
	// body is on the disk when Commit returns. A Writer is committed at most once.
	Commit() (sum string, err error)
	// Close discards what was not committed. It does nothing after Commit.
	Close() error
}

// inMemory is how many bytes of a body are held before they go to a file, so that a
// small body that exists already costs no write.
const inMemory = 256 << 10

// Create returns a writer for one body. Its errors are [jobs.ErrNoRoom] while the disk
// is full, and the error of ctx once that has ended. A large body is never in memory
// as a whole. Equal bodies may be written at the same time.
func (f *Folder) Create(ctx context.Context) Writer {
	return &draft{ctx: ctx, folder: f, sum: sha256.New()}
}

// A draft is a body that is being written: first in memory, then in a temporary file.
type draft struct {
	ctx    context.Context // of the write, which one caller makes from begin to end
	folder *Folder
	sum    hash.Hash
	size   int64
	start  []byte
	file   *os.File // nil while the body fits in memory, and once it was moved
}

// Write implements [io.Writer].
func (d *draft) Write(p []byte) (int, error) {
	if err := d.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := d.write(p)
	return n, d.failed(err)
}

func (d *draft) write(p []byte) (int, error) {
	if d.file == nil && len(d.start)+len(p) > inMemory {
		if err := d.open(); err != nil {
			return 0, err
		}
	}
	if d.file == nil {
		d.start = append(d.start, p...)
	} else if _, err := d.file.Write(p); err != nil {
		return 0, err
	}
	d.size += int64(len(p))
	return d.sum.Write(p)
}

// Commit implements [Writer]. A file of the right name but another length is what a
// disk made of a crash, and is replaced.
func (d *draft) Commit() (sum string, err error) {
	if err := d.ctx.Err(); err != nil {
		return "", err
	}
	sum = hex.EncodeToString(d.sum.Sum(nil))
	path := d.folder.path(sum)
	if info, err := os.Stat(path); err == nil && info.Size() == d.size {
		// It may belong to no row by now: make it as good as new.
		if now := time.Now(); os.Chtimes(path, now, now) == nil {
			return sum, d.Close()
		}
	}
	if err := errors.Join(d.moveTo(path), d.discard()); err != nil {
		return "", d.failed(err)
	}
	return sum, nil
}

// moveTo gives the body its name once all of it is on the disk.
func (d *draft) moveTo(path string) error {
	if err := d.folder.mkdir(filepath.Dir(path)); err != nil {
		return err
	}
	if d.file == nil {
		if err := d.open(); err != nil {
			return err
		}
	}
	if err := d.file.Sync(); err != nil {
		return err
	}
	if err := os.Rename(d.file.Name(), path); err != nil {
		return err
	}
	file := d.file
	d.file = nil
	return errors.Join(file.Close(), d.folder.sync(filepath.Dir(path)))
}

// Close implements [Writer].
func (d *draft) Close() error { return d.failed(d.discard()) }

func (d *draft) discard() error {
	if d.file == nil {
		return nil
	}
	file := d.file
	d.file = nil
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// open makes the temporary file and moves what is in memory into it.
func (d *draft) open() (err error) {
	if d.file, err = os.CreateTemp(d.folder.temporary(), "put-"); err != nil {
		d.file = nil
		return err
	}
	_, err = d.file.Write(d.start)
	d.start = nil
	return err
}

// failed adds to an error what was to be done.
func (d *draft) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store a blob: %w", noRoom(d.folder.root, err))
}
