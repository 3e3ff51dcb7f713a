package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"headroom/jobs"
)

// MboxFile is [Mbox] to a file. The error is [fs.ErrExist] if the file exists and
// overwrite is false.
func MboxFile(ctx context.Context, o Options, path string, overwrite bool) (r Result, err error) {
	if _, err := os.Lstat(path); err == nil && !overwrite {
		return Result{}, fmt.Errorf("export to %s: %w", path, fs.ErrExist)
	}
	err = whole(path, true, func(f *os.File) error {
		r, err = Mbox(ctx, o, f)
		return err
	})
	return r, err
}

// EMLFolder writes each message to its own file in a folder, ID.eml, byte for byte. It
// keeps existing files of the right size, so an interrupted export continues.
func EMLFolder(ctx context.Context, o Options, folder string) (Result, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return Result{}, fmt.Errorf("make the folder of the export: %w", err)
	}
	return o.each(ctx, func(m jobs.Message, raw io.Reader) error {
		path := filepath.Join(folder, url.QueryEscape(m.ID)+".eml")
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Size() == m.Size {
			return errPresent
		}
		return whole(path, false, func(f *os.File) error {
			_, err := io.Copy(f, raw)
			return err
		})
	})
}

// whole writes a file that gets its name only after write succeeded. With sync, the
// file is on the disk by then.
func whole(path string, sync bool, write func(*os.File) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*.part")
	if err != nil {
		return fmt.Errorf("export to %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	err = write(f)
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// CreatePrivate is [os.Create] for a file that no other user of the machine may read,
// even if the file exists already.
func CreatePrivate(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() { // not /dev/stdout
		err = errors.Join(f.Chmod(0o600), f.Truncate(0))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
