// Package private makes files and folders that only their owner may use, and closes
// those that other users of the machine may use: what is stored is other people's
// mail. It does not know what the files hold.
package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"go.uber.org/zap"
)

// The modes of what is private, whatever the umask is.
const (
	FileMode   fs.FileMode = 0o600
	FolderMode fs.FileMode = 0o700

	others fs.FileMode = 0o077
)

// Mkdir makes a private folder below one that exists. A folder that exists already is
// left alone.
func Mkdir(dir string) error {
	err := os.Mkdir(dir, FolderMode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Chmod(dir, FolderMode) // the umask may have taken away more
}

// Sync makes the names in a folder survive a crash of the machine.
func Sync(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// A Trail is the folders that [Trail.MkdirAll] has made, the outermost first.
type Trail []string

// MkdirAll makes a private folder and those above it that are missing. Their names
// survive a crash of the machine.
func (t *Trail) MkdirAll(dir string) error {
	var missing []string
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append(missing, at)
	}
	for _, at := range slices.Backward(missing) {
		*t = append(*t, at)
		if err := errors.Join(Mkdir(at), Sync(filepath.Dir(at))); err != nil {
			return err
		}
	}
	return os.MkdirAll(dir, FolderMode) // reports a path that is no folder
}

// Undo removes the folders that MkdirAll made, except those that hold something.
func (t Trail) Undo() {
	for _, dir := range slices.Backward(t) {
		_ = os.Remove(dir) // not empty, or never made
	}
}

// Exposed reports whether other users may do anything with a file or folder.
func Exposed(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&others != 0
}

// Close closes a file or folder to other users and logs that. It logs a warning where
// only the owner, who is somebody else, may do so.
func Close(path string, mode fs.FileMode, log *zap.Logger) {
	if !Exposed(path) {
		return
	}
	if err := os.Chmod(path, mode); err != nil {
		log.Warn("other users of this machine may read the store; its owner must change that",
			zap.String("path", path), zap.String("run", fmt.Sprintf("chmod %o %s", mode, path)), zap.Error(err))
		return
	}
	log.Warn("other users of this machine could read the store; they cannot any more", zap.String("path", path), zap.String("mode", fmt.Sprintf("%04o", mode)))
}

// CloseAll closes a folder with all that it holds, and logs that once.
func CloseAll(dir string, log *zap.Logger) {
	Close(dir, FolderMode, log)
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return // it was removed meanwhile
	}
	quiet := zap.NewNop()
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Type()&fs.ModeSymlink != 0:
		case d.IsDir():
			Close(path, FolderMode, quiet)
		default:
			Close(path, FileMode, quiet)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("a folder of the store was not closed to other users", zap.String("path", dir), zap.Error(err))
	}
}

// HoldsOnly reports whether ours accepts every name in a folder. A folder in which
// others keep things must not be closed to them.
func HoldsOnly(dir string, ours func(name string) bool) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !ours(e.Name()) })
}
