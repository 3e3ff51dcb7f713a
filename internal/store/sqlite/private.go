package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.uber.org/zap"
)

// What is stored is other people's mail: no other user of the machine may read it,
// whatever the umask is.
const (
	privateFile   fs.FileMode = 0o600
	privateFolder fs.FileMode = 0o700
	others        fs.FileMode = 0o077
)

// makePrivate makes a folder that only its owner may enter, and sees to it that its
// name survives a crash of the machine. One that is there is left alone.
func makePrivate(dir string, sync func(string) error) error {
	err := os.Mkdir(dir, privateFolder)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.Chmod(dir, privateFolder); err != nil { // the umask may have taken away more
		return err
	}
	return sync(filepath.Dir(dir))
}

// makeDatabase makes an empty file that only its owner may read, of which SQLite
// makes a database, with side files of the same mode. It never opens a file that is
// there: to close it again would end SQLite's locks on it.
func makeDatabase(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, privateFile)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(privateFile), f.Close())
}

// protect takes from other users what an earlier version, or somebody, has left open
// to them, and says so. What belongs to somebody else it can only tell of.
func protect(path string, b blobs, log *zap.Logger) {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		closeTo(path+suffix, privateFile, log)
	}
	if dir := filepath.Dir(path); open(dir) {
		if holdsOnly(dir, func(name string) bool {
			return strings.HasPrefix(name, filepath.Base(path)) || filepath.Join(dir, name) == b.root
		}) {
			closeTo(dir, privateFolder, log)
		} else {
			log.Debug("other users of this machine may list the folder of the store, which holds other things too; "+
				"they cannot read the store", zap.String("folder", dir))
		}
	}
	if open(b.root) && holdsOnly(b.root, isBlobFolder) {
		b.protect(log)
	}
}

// protect closes the folders of blobs and what is in them.
func (b blobs) protect(log *zap.Logger) {
	closeTo(b.root, privateFolder, log)
	quiet := zap.NewNop() // said once for all of them
	root, err := filepath.EvalSymlinks(b.root)
	if err != nil {
		return // it was removed meanwhile
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Type()&fs.ModeSymlink != 0:
		case d.IsDir():
			closeTo(path, privateFolder, quiet)
		default:
			closeTo(path, privateFile, quiet)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("blobs not closed to other users", zap.Error(err))
	}
}

// open reports whether other users may do anything with a file or folder.
func open(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&others != 0
}

// closeTo leaves a file or folder to its owner.
func closeTo(path string, mode fs.FileMode, log *zap.Logger) {
	if !open(path) {
		return
	}
	if err := os.Chmod(path, mode); err != nil {
		log.Warn("other users of this machine may read the store; its owner must change that",
			zap.String("path", path), zap.String("run", fmt.Sprintf("chmod %o %s", mode, path)), zap.Error(err))
		return
	}
	log.Warn("other users of this machine could read the store; they cannot any more", zap.String("path", path), zap.String("mode", fmt.Sprintf("%04o", mode)))
}

// holdsOnly reports whether a folder holds nothing but what ours accepts. A folder
// that others put things in is not for us to close.
func holdsOnly(dir string, ours func(name string) bool) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !ours(e.Name()) })
}

// isBlobFolder reports whether a name is that of a folder in the root of blobs.
func isBlobFolder(name string) bool {
	return name == "tmp" || name == damagedFolder || isShard(name)
}
