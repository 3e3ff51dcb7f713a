package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/jobs"
)

// While another process is in the middle of a transaction, readers see the
// state before it and do not wait; a writer waits until it is over.
func TestReadersDoNotWaitForWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "headroom.db")
	s := open(t, path)
	job := start(t, s)
	raw := must[*sql.DB](t)(sql.Open("sqlite", path))
	defer raw.Close()
	other := must[*sql.Conn](t)(raw.Conn(t.Context()))
	defer other.Close()
	for _, stmt := range []string{"BEGIN IMMEDIATE", "UPDATE jobs SET slice = 99"} {
		must[sql.Result](t)(other.ExecContext(t.Context(), stmt))
	}

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if got := must[jobs.Job](t)(s.Job(ctx, job.ID)); !cmp.Equal(got, job) {
		t.Errorf("a reader sees %+v, want the row before the transaction", got)
	}
	if _, err := s.NextItems(ctx, job.Ref(), 0, 1); err != nil {
		t.Errorf("NextItems = %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.EndSlice(short, job.Ref()); short.Err() == nil {
		t.Errorf("a writer did not wait for the transaction: %v", err)
	}

	ended := make(chan error, 1)
	go func() {
		_, err := s.EndSlice(ctx, job.Ref())
		ended <- err
	}()
	must[sql.Result](t)(other.ExecContext(t.Context(), "ROLLBACK"))
	if err := <-ended; err != nil {
		t.Errorf("EndSlice after the transaction = %v", err)
	}
	if got := must[jobs.Job](t)(s.Job(ctx, job.ID)); got.Slice != 1 {
		t.Errorf("slice = %d, want 1: what was rolled back left nothing", got.Slice)
	}
}
