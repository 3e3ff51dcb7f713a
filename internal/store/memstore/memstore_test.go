package memstore_test

import (
	"testing"

	"headroom/internal/store/memstore"
	"headroom/internal/store/storetest"
)

// TestStore runs the suite that every store passes.
func TestStore(t *testing.T) {
	storetest.Run(t, func(_ testing.TB, opts storetest.Options) []storetest.Store {
		s := memstore.New(memstore.Options{NowFunc: opts.NowFunc, Watched: opts.Watched})
		handles := make([]storetest.Store, opts.Handles)
		for i := range handles {
			handles[i] = s
		}
		return handles
	})
}
