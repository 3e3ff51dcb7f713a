package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

// many returns n accounts' backfills, all claimed.
func many(t *testing.T, s *sqlite.Store, n int) []jobs.TaskRef {
	t.Helper()
	refs := make([]jobs.TaskRef, n)
	for i := range refs {
		email := fmt.Sprintf("user%d@example.com", i)
		if err := s.AddAccount(t.Context(), jobs.Account{Email: email, Project: "prod"}); err != nil {
			t.Fatal(err)
		}
		job, _, err := s.StartBackfill(t.Context(), email, jobs.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		refs[i] = must[jobs.Job](t)(s.Claim(t.Context(), job.Ref(), hour)).Ref()
	}
	return refs
}

// hold takes the write lock of a store's file, as another process would, until
// release is called.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	raw := must[*sql.DB](t)(sql.Open("sqlite", path))
	t.Cleanup(func() { raw.Close() })
	conn := must[*sql.Conn](t)(raw.Conn(t.Context()))
	t.Cleanup(func() { conn.Close() })
	must[sql.Result](t)(conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"))
	return func() { must[sql.Result](t)(conn.ExecContext(t.Context(), "ROLLBACK")) }
}

// Operations that wait together are one transaction; those among them that fail
// leave nothing, and undo nothing of the others.
func TestOneThatFailsUndoesNothingOfTheOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "headroom.db")
	s := open(t, path)
	refs := many(t, s, 40)
	release := hold(t, path)
	errs := make([]error, len(refs))
	var wg sync.WaitGroup
	for i, ref := range refs {
		wg.Go(func() {
			if _, errs[i] = s.AddListed(t.Context(), ref, jobs.Page{IDs: []string{"a", "b"}}); errs[i] != nil {
				return
			}
			results := []jobs.Result{{ID: "a", Outcome: jobs.ItemGone}}
			if i%2 == 1 {
				results = append(results, jobs.Result{ID: "never listed", Outcome: jobs.ItemGone})
			}
			_, errs[i] = s.Commit(t.Context(), ref, results)
		})
	}
	release()
	wg.Wait()
	for i, ref := range refs {
		fails := i%2 == 1
		if fails != errors.Is(errs[i], jobs.ErrNotFound) || !fails && errs[i] != nil {
			t.Errorf("job %d: Commit = %v, want an error only with an id that was never listed", i, errs[i])
		}
		want := int64(1)
		if fails {
			want = 0
		}
		if p := must[jobs.Job](t)(s.Job(t.Context(), ref.Job)).Progress; p.Listed != 2 || p.Gone != want {
			t.Errorf("job %d: progress %+v, want 2 listed and %d gone", i, p, want)
		}
	}
}

// A write that is given up before its turn never happens, and holds up nobody.
func TestAWriteGivenUpInLineIsNotWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "headroom.db")
	s := open(t, path)
	refs := many(t, s, 2)
	release := hold(t, path)
	short, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := s.EndSlice(short, refs[0]); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("EndSlice while another process writes = %v, want its deadline", err)
	}
	release()
	must[jobs.Job](t)(s.EndSlice(t.Context(), refs[1]))
	if got := must[jobs.Job](t)(s.Job(t.Context(), refs[0].Job)); got.Slice != 0 {
		t.Errorf("slice = %d, want 0: the caller gave up", got.Slice)
	}
}

// A renewal is written before what waited longer.
func TestRenewalsGoFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "headroom.db")
	s := open(t, path)
	refs := many(t, s, 2)
	var page []string
	for i := range 80 {
		page = append(page, fmt.Sprintf("m%d", i))
	}
	release := hold(t, path)
	const crowd = 60
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	var listed, before sync.Map
	for i := range crowd {
		wg.Go(func() {
			ids := make([]string, len(page))
			for k, id := range page {
				ids[k] = fmt.Sprintf("%s-%d", id, i)
			}
			if _, err := s.AddListed(ctx, refs[0], jobs.Page{IDs: ids, Next: "more"}); err != nil {
				t.Errorf("AddListed = %v", err)
			}
			listed.Store(i, true)
		})
	}
	wg.Go(func() {
		if _, err := s.Renew(ctx, refs[1], 2*hour); err != nil {
			t.Errorf("Renew = %v", err)
		}
		listed.Range(func(k, _ any) bool { before.Store(k, true); return true })
	})
	release()
	wg.Wait()
	n := 0
	before.Range(func(any, any) bool { n++; return true })
	if n > crowd/3 {
		t.Errorf("%d of %d listings were written before the renewal, want it among the first", n, crowd)
	}
	if got := must[jobs.Job](t)(s.Job(t.Context(), refs[1].Job)); time.Until(got.LeaseUntil) < hour {
		t.Errorf("lease until %s, want two hours from now", got.LeaseUntil)
	}
}

func TestAClosedStoreRefusesWrites(t *testing.T) {
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "headroom.db")})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatalf("Close = %v", err)
	}
	if err := s.AddAccount(t.Context(), jobs.Account{Email: ann, Project: "prod"}); err == nil {
		t.Error("AddAccount on a closed store succeeded")
	}
}
