package sqlite_test

import (
	"testing"

	"headroom/internal/store/sqlite"
	"headroom/internal/store/storetest"
)

// TestStore runs the suite that every store passes.
func TestStore(t *testing.T) {
	storetest.Run(t, func(t testing.TB, opts storetest.Options) []storetest.Store {
		path := emptyDatabase(t)
		var handles []storetest.Store
		for range opts.Handles {
			handles = append(handles, openWith(t, sqlite.Options{Path: path, Watched: opts.Watched, NowFunc: opts.NowFunc}))
		}
		return handles
	})
}
