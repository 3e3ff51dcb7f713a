package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

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
