package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/blob"
	"headroom/internal/private"
	"headroom/internal/store/sqlite"
)

// ErrNoStore reports that the store's file does not exist yet.
var ErrNoStore = errors.New("nothing has been stored yet")

// openStore opens the store if there is one. It makes neither a store nor a folder: the
// error is [ErrNoStore] then.
func openStore(ctx context.Context, cfg config.Config, log *zap.Logger) (*sqlite.Store, error) {
	protect(cfg, log)
	s, err := sqlite.Open(ctx, sqlite.Options{Path: cfg.Store.Path, Log: log, Watched: Watched(cfg), Existing: true})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: no file %s; add an account first, or set store.path (HEADROOM_STORE_PATH)", ErrNoStore, cfg.Store.Path)
	}
	return s, err
}

// MakeStore opens the store, and makes it and the folder of the bodies where there are
// none. After an error no folder is left that it has made.
func MakeStore(ctx context.Context, cfg config.Config, log *zap.Logger) (_ *sqlite.Store, err error) {
	var made private.Trail
	defer func() {
		if err != nil {
			made.Undo()
		}
	}()
	if path, e := filepath.Abs(cfg.Store.Path); e == nil && cfg.Store.Path != "" { // else to open it reports the error
		if err := made.MkdirAll(filepath.Dir(path)); err != nil {
			return nil, fmt.Errorf("make the store's folder: %w; choose another path or have the folder made", err)
		}
		if err := Blobs(cfg).Make(&made); err != nil {
			return nil, err
		}
	}
	protect(cfg, log)
	return sqlite.Open(ctx, sqlite.Options{Path: cfg.Store.Path, Log: log, Watched: Watched(cfg)})
}

// Blobs returns the bodies of the store.
func Blobs(cfg config.Config) *blob.Folder {
	return blob.At(cmp.Or(cfg.Store.Blobs, filepath.Join(filepath.Dir(cfg.Store.Path), "blobs")))
}

// protect closes the store to the other users of the machine: its files, its folder
// unless that holds other things too, and the bodies.
func protect(cfg config.Config, log *zap.Logger) {
	path, err := filepath.Abs(cfg.Store.Path)
	if err != nil || cfg.Store.Path == "" {
		return // to open it reports the error
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return // so does this
	}
	log = log.Named("store")
	blobs := Blobs(cfg)
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		private.Close(path+suffix, private.FileMode, log)
	}
	if dir := filepath.Dir(path); private.Exposed(dir) {
		ours := func(name string) bool {
			return strings.HasPrefix(name, filepath.Base(path)) || filepath.Join(dir, name) == blobs.Root()
		}
		if private.HoldsOnly(dir, ours) {
			private.Close(dir, private.FolderMode, log)
		} else {
			log.Debug("other users of this machine may list the folder of the store, which holds other things too; "+
				"they cannot read the store", zap.String("folder", dir))
		}
	}
	blobs.Protect(log)
}
