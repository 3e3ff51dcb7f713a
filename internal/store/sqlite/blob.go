package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"headroom/jobs"
)

// blobs is a folder of files that are named after the SHA-256 of their content:
// ab/cd/abcd… below root. Files are written in root/tmp and moved into place
// whole, so a file that has its name has its content.
type blobs struct {
	root   string
	sync   func(dir string) error // makes names in a folder survive a crash
	synced *sync.Map              // folders whose own names do, by what this process knows
}

func newBlobs(root string) blobs { return blobs{root: root, sync: syncDir, synced: new(sync.Map)} }

// abandoned is the age from which a file in tmp is a dead process's.
const abandoned = time.Hour

// clear rids the folder of files that killed processes left.
func (b blobs) clear() error {
	entries, err := os.ReadDir(b.tmp())
	if err != nil {
		return fmt.Errorf("read the blob folder: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < abandoned {
			continue // finished meanwhile, or being written
		}
		if err := os.Remove(filepath.Join(b.tmp(), e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("clear the blob folder: %w", err)
		}
	}
	return nil
}

func (b blobs) tmp() string { return filepath.Join(b.root, "tmp") }

func (b blobs) path(sha string) string { return filepath.Join(b.root, sha[:2], sha[2:4], sha) }

// put stores what fill writes, unless it is there. A file of the right name but
// another length is what a disk made of a crash, and is replaced.
func (b blobs) put(fill func(io.Writer) error) (sha string, err error) {
	d := &draft{tmp: b.tmp(), sum: sha256.New()}
	defer func() { err = noRoom(b.root, errors.Join(err, d.drop())) }()
	if err := fill(d); err != nil {
		return "", err
	}
	sha = hex.EncodeToString(d.sum.Sum(nil))
	path := b.path(sha)
	if info, err := os.Stat(path); err == nil && info.Size() == d.size {
		// It may belong to no row by now: it is as good as new.
		if now := time.Now(); os.Chtimes(path, now, now) == nil {
			return sha, nil
		}
	}
	if err := b.folder(filepath.Dir(path)); err != nil {
		return "", err
	}
	if err := d.moveTo(path); err != nil {
		return "", err
	}
	return sha, b.sync(filepath.Dir(path))
}

// folder makes a folder below root and those above it. Their names survive a crash
// when it returns, also of those that another process has made just now.
func (b blobs) folder(dir string) error {
	if _, known := b.synced.Load(dir); known || dir == b.root {
		if _, err := os.Lstat(dir); err == nil {
			return nil
		}
	}
	above := filepath.Dir(dir)
	if dir != b.root {
		if err := b.folder(above); err != nil {
			return err
		}
	}
	if err := makePrivate(dir, func(string) error { return nil }); err != nil {
		return err
	}
	if err := b.sync(above); err != nil {
		return err
	}
	b.synced.Store(dir, true)
	return nil
}

// inMemory is how many bytes of a blob are held before they go to a file, so that
// small ones which are there already cost no writing.
const inMemory = 256 << 10

// A draft is a blob that is being written: first in memory, then in a file in tmp.
type draft struct {
	tmp   string
	sum   hash.Hash
	size  int64
	start []byte
	file  *os.File // nil while it fits in memory, and when it was moved
}

// Write implements [io.Writer].
func (d *draft) Write(p []byte) (int, error) {
	n, err := d.write(p)
	return n, noRoom(filepath.Dir(d.tmp), err)
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

// open makes the file and moves what there is into it.
func (d *draft) open() (err error) {
	if d.file, err = os.CreateTemp(d.tmp, "put-"); err != nil {
		d.file = nil
		return err
	}
	_, err = d.file.Write(d.start)
	d.start = nil
	return err
}

// moveTo gives the blob its name, when all of it is on the disk.
func (d *draft) moveTo(path string) error {
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
	return file.Close()
}

// drop forgets a blob that was not moved.
func (d *draft) drop() error {
	if d.file == nil {
		return nil
	}
	return errors.Join(d.file.Close(), os.Remove(d.file.Name()))
}

// syncDir makes a new name in a folder survive a crash of the machine.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// PutBlob stores what fill writes, a raw message, and returns its SHA-256 in
// lower-case hex. It is on the disk when PutBlob returns. What is there already is
// not written again; concurrent calls for equal content are fine. No more of a
// large message than a step of it is in memory. When fill fails nothing is stored,
// and its error is returned as it is.
func (s *Store) PutBlob(ctx context.Context, fill func(io.Writer) error) (sha string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	var unfilled error
	sha, err = s.blobs.put(func(w io.Writer) error {
		unfilled = fill(w)
		return unfilled
	})
	switch {
	case unfilled != nil:
		return "", unfilled
	case err != nil:
		return "", fmt.Errorf("store a blob: %w", err)
	}
	return sha, nil
}

// Blob opens a raw message by the SHA-256 that [Store.PutBlob] returned; the
// caller closes it. The error is [jobs.ErrNotFound] when there is none, and
// [jobs.ErrDamaged] when the file has other content than was stored, which is known
// before anything of it is served.
func (s *Store) Blob(ctx context.Context, sha string) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := validHash(sha); err != nil {
		return nil, err
	}
	f, err := os.Open(s.blobs.path(sha))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("blob %s: %w", sha, jobs.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("open blob: %w", err)
	}
	if _, err := verify(ctx, f, sha); err != nil {
		return nil, errors.Join(fmt.Errorf("blob %s: %w", sha, err), f.Close())
	}
	return f, nil
}

// verify reads a blob and goes back to its start. The error is [jobs.ErrDamaged] if it
// has another hash, or cannot be read to its end.
func verify(ctx context.Context, f *os.File, sha string) (size int64, err error) {
	sum := sha256.New()
	size, err = io.Copy(sum, &cancelled{ctx, f})
	switch {
	case ctx.Err() != nil:
		return size, ctx.Err()
	case err != nil: // a broken disk, or a folder of that name
		return size, fmt.Errorf("%w: %w", jobs.ErrDamaged, err)
	case hex.EncodeToString(sum.Sum(nil)) != sha:
		return size, fmt.Errorf("%w: its %d bytes are not those that were stored; run: headroom store check --repair", jobs.ErrDamaged, size)
	}
	_, err = f.Seek(0, io.SeekStart)
	return size, err
}

// cancelled is a reader that ends with a context.
type cancelled struct {
	ctx  context.Context
	from io.Reader
}

func (c *cancelled) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.from.Read(p)
}

// validHash refuses what is not a SHA-256 in lower-case hex.
func validHash(sha string) error {
	if len(sha) != hex.EncodedLen(sha256.Size) || strings.Trim(sha, "0123456789abcdef") != "" {
		return fmt.Errorf("%q is not a SHA-256 in lower-case hex", sha)
	}
	return nil
}
