package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"headroom/jobs"
)

// Check reads one body and returns how many bytes it has. The error is
// [jobs.ErrNotFound] if it is missing, and [jobs.ErrDamaged] if it is not what was
// committed or cannot be read.
func (f *Folder) Check(ctx context.Context, sum string) (size int64, err error) {
	if err := jobs.CheckSum(sum); err != nil {
		return 0, fmt.Errorf("%w: %w", jobs.ErrDamaged, err)
	}
	file, size, err := f.open(ctx, sum)
	if err != nil {
		return size, err
	}
	return size, file.Close()
}

// verify reads a body and goes back to its start.
func verify(ctx context.Context, file *os.File, sum string) (size int64, err error) {
	hash := sha256.New()
	size, err = io.Copy(hash, &cancelled{ctx, file})
	switch {
	case ctx.Err() != nil:
		return size, ctx.Err()
	case err != nil: // a broken disk, or a folder of that name
		return size, fmt.Errorf("%w: %w", jobs.ErrDamaged, err)
	case hex.EncodeToString(hash.Sum(nil)) != sum:
		return size, fmt.Errorf("%w: its %d bytes are not those that were stored; run: headroom store check --repair", jobs.ErrDamaged, size)
	}
	_, err = file.Seek(0, io.SeekStart)
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

// A File is a file in the folder, by its path.
type File struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// Strays lists the files among the bodies that are no body of a known sum. A file that
// is younger than an hour is left out: its row may be about to be written.
func (f *Folder) Strays(ctx context.Context, known func(sum string) bool) ([]File, error) {
	found := []File{}
	err := filepath.WalkDir(f.root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist):
			return nil // it was removed meanwhile
		case err != nil:
			return err
		case d.IsDir():
			if dir := filepath.Dir(path); dir == f.root && !isShard(d.Name()) {
				return fs.SkipDir // temporary, set aside, or not ours
			}
			return nil
		}
		if sum := d.Name(); jobs.CheckSum(sum) == nil && path == f.path(sum) && known(sum) {
			return nil
		}
		info, err := d.Info()
		if err == nil && filepath.Dir(path) != f.root && time.Since(info.ModTime()) >= abandoned {
			found = append(found, File{Path: path, Bytes: info.Size()})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the blobs: %w", err)
	}
	return found, nil
}

// Remove removes files that [Folder.Strays] listed, and returns how many. It keeps a
// file that was committed again meanwhile.
func (f *Folder) Remove(ctx context.Context, strays []File) (removed int, err error) {
	for _, stray := range strays {
		if ctx.Err() != nil {
			return removed, ctx.Err()
		}
		// Under another name nobody takes it for stored while its age is looked at.
		aside := filepath.Join(f.temporary(), "stray-"+filepath.Base(stray.Path))
		err := os.Rename(stray.Path, aside)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return removed, fmt.Errorf("remove a blob without a row: %w", err)
		}
		if info, err := os.Stat(aside); err == nil && time.Since(info.ModTime()) < abandoned {
			if err := os.Rename(aside, stray.Path); err != nil {
				return removed, fmt.Errorf("keep a blob: %w", err)
			}
			continue
		}
		if err := os.Remove(aside); err != nil {
			return removed, fmt.Errorf("remove a blob without a row: %w", err)
		}
		removed++
	}
	return removed, nil
}

// SetAside moves a damaged body out of the way of its replacement, to a folder beside
// the others: it may be all that is left of a message.
func (f *Folder) SetAside(sum string) error {
	if err := jobs.CheckSum(sum); err != nil {
		return err
	}
	folder := filepath.Join(f.root, damaged)
	if err := f.mkdir(folder); err != nil {
		return fmt.Errorf("make the folder of damaged blobs: %w", err)
	}
	err := os.Rename(f.path(sum), filepath.Join(folder, sum))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("set a damaged blob aside: %w", err)
	}
	return nil
}
