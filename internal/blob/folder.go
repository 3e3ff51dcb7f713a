// Package blob keeps bodies, raw messages and the content of attachments, each under
// the SHA-256 of its content. It does not know whose they are: the store's rows name
// them by that sum.
//
// Invariants:
//   - A body that has its name has its content: it is written under another name,
//     synced, and then renamed.
//   - A committed body survives a crash of the machine, with the folders above it.
//   - Equal bodies are one file.
//   - Only the owner of the process may read a body.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"headroom/internal/private"
	"headroom/jobs"
)

// Names in the root of a folder, besides those of the first two digits of sums.
const (
	temporary = "tmp"     // what is being written
	damaged   = "damaged" // what [Folder.SetAside] moved away
)

// abandoned is the age from which nobody writes a temporary file any more, and from
// which a body without a row is not about to get one.
const abandoned = time.Hour

// A Folder keeps bodies in files: abcd… stands in ab/cd below its root. It is safe for
// concurrent use, also by several processes.
type Folder struct {
	root   string
	sync   func(dir string) error // [private.Sync], except in tests
	synced sync.Map               // folders whose own names survive a crash
}

// At returns the bodies below root. It makes nothing: a folder that does not exist
// holds no bodies, and [Folder.Create] needs one that was made.
func At(root string) *Folder {
	if path, err := filepath.Abs(root); err == nil {
		root = path
	}
	return &Folder{root: root, sync: private.Sync}
}

// Make makes the folder if it is missing, and removes files that killed processes have
// left. Made notes what it has made, also where it fails.
func (f *Folder) Make(made *private.Trail) error {
	if info, err := os.Stat(f.root); err == nil && !info.IsDir() {
		return fmt.Errorf("blob folder %s is a file; choose a folder", f.root)
	}
	if err := made.MkdirAll(f.temporary()); err != nil {
		return noRoom(filepath.Dir(f.root), fmt.Errorf("make the blob folder: %w; choose another folder or have it made", err))
	}
	return f.clear()
}

// Root returns the absolute path of the folder.
func (f *Folder) Root() string { return f.root }

// Protect closes the folder to other users of the machine, unless it holds other
// things than bodies.
func (f *Folder) Protect(log *zap.Logger) {
	ours := func(name string) bool { return name == temporary || name == damaged || isShard(name) }
	if private.Exposed(f.root) && private.HoldsOnly(f.root, ours) {
		private.CloseAll(f.root, log)
	}
}

func (f *Folder) temporary() string { return filepath.Join(f.root, temporary) }

func (f *Folder) path(sum string) string { return filepath.Join(f.root, sum[:2], sum[2:4], sum) }

// isShard reports whether a name is the first two digits of a sum.
func isShard(name string) bool {
	return len(name) == 2 && strings.Trim(name, "0123456789abcdef") == ""
}

// clear removes temporary files that nobody writes any more.
func (f *Folder) clear() error {
	entries, err := os.ReadDir(f.temporary())
	if err != nil {
		return fmt.Errorf("read the blob folder: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < abandoned {
			continue // finished meanwhile, or being written
		}
		if err := os.Remove(filepath.Join(f.temporary(), e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("clear the blob folder: %w", err)
		}
	}
	return nil
}

// mkdir makes a folder below the root and those above it. When it returns, their names
// survive a crash, also of those that another process has just made.
func (f *Folder) mkdir(dir string) error {
	if _, known := f.synced.Load(dir); known || dir == f.root {
		if _, err := os.Lstat(dir); err == nil {
			return nil
		}
	}
	above := filepath.Dir(dir)
	if dir != f.root {
		if err := f.mkdir(above); err != nil {
			return err
		}
	}
	if err := private.Mkdir(dir); err != nil {
		return err
	}
	if err := f.sync(above); err != nil {
		return err
	}
	f.synced.Store(dir, true)
	return nil
}

// Open opens a body by its sum; the caller closes it. The error is
// [jobs.ErrNotFound] if there is none, and [jobs.ErrDamaged] if the file has other
// content than was committed, which is known before anything of it is served.
func (f *Folder) Open(ctx context.Context, sum string) (io.ReadCloser, error) {
	file, _, err := f.open(ctx, sum)
	if err != nil {
		return nil, err
	}
	return file, nil
}

func (f *Folder) open(ctx context.Context, sum string) (*os.File, int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	if err := jobs.CheckSum(sum); err != nil {
		return nil, 0, err
	}
	file, err := os.Open(f.path(sum))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, fmt.Errorf("blob %s: %w", sum, jobs.ErrNotFound)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("open blob: %w", err)
	}
	size, err := verify(ctx, file, sum)
	if err != nil {
		return nil, size, errors.Join(fmt.Errorf("blob %s: %w", sum, err), file.Close())
	}
	return file, size, nil
}

// noRoom makes an error that says that the disk is full a [jobs.ErrNoRoom] that names
// the folder. It returns other errors as they are.
func noRoom(folder string, err error) error {
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	if !full || errors.Is(err, jobs.ErrNoRoom) {
		return err
	}
	return fmt.Errorf("%w: make room in %s: %w", jobs.ErrNoRoom, folder, err)
}
