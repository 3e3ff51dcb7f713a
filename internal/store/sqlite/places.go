package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// places finds the absolute paths of the database and of the blob folder, and
// refuses what can never work before anything is made.
func places(opts Options) (path, folder string, err error) {
	if opts.Path == "" {
		return "", "", errors.New("no path for the store's database")
	}
	if path, err = filepath.Abs(opts.Path); err != nil {
		return "", "", fmt.Errorf("store path %q: %w", opts.Path, err)
	}
	folder = opts.Blobs
	if folder == "" {
		folder = filepath.Join(filepath.Dir(path), "blobs")
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return "", "", fmt.Errorf("blob folder %q: %w", opts.Blobs, err)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return "", "", fmt.Errorf("store path %s is a folder; name a file in it, for instance %s",
			path, filepath.Join(path, "headroom.db"))
	}
	if info, err := os.Stat(folder); err == nil && !info.IsDir() {
		return "", "", fmt.Errorf("blob folder %s is a file; choose a folder", folder)
	}
	return path, folder, nil
}

// A trail is the folders that were made on the way, the outermost first.
type trail []string

// mkdir makes a folder, with those above it, for its owner alone.
func (t *trail) mkdir(dir string) error {
	var missing []string
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append(missing, at)
	}
	for _, at := range slices.Backward(missing) {
		*t = append(*t, at)
		if err := makePrivate(at, syncDir); err != nil {
			return err
		}
	}
	return os.MkdirAll(dir, privateFolder) // says what is wrong with one that is no folder
}

// undo removes what mkdir made, but for what holds something by now.
func (t trail) undo() {
	for _, dir := range slices.Backward(t) {
		_ = os.Remove(dir) // not empty, or never made
	}
}
