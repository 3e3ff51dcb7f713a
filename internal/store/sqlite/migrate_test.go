package sqlite

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"headroom/jobs"
)

// TestAnOldDatabaseIsMigrated opens a database that the version before the column
// format wrote, and finds that column right in rows of then and of now.
func TestAnOldDatabaseIsMigrated(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "headroom.db")
	old, err := openDB(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Sub(migrations, "migrations/sqlite")
	if err != nil {
		t.Fatal(err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, old, files)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(ctx, 23); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`INSERT INTO accounts (email, project, tenant, class, created_at) VALUES ('ann@example.com', 'p', '', '', 1)`,
		`INSERT INTO jobs (id, kind, account, project, filter, state, live, epoch, created_at, updated_at) VALUES
			('backfill:ann@example.com', 'mail-backfill', 'ann@example.com', 'p', '{}', 'running', TRUE, 4, 1, 1),
			('backfill:ann@example.com:1', 'mail-backfill', 'ann@example.com', 'p', '{"labels":["\"format\":\"full\""]}', 'paused', FALSE, 1, 2, 2),
			('backfill:ann@example.com:2', 'mail-backfill', 'ann@example.com', 'p', '{"spam_trash":true,"format":"full"}', 'queued', TRUE, 1, 3, 3),
			('sync:ann@example.com', 'mail-sync', 'ann@example.com', 'p', '{"format":"metadata-first"}', 'completed', FALSE, 2, 4, 4)`,
	} {
		if _, err := old.ExecContext(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}

	s, err := Open(ctx, Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, _, err := s.StartBackfill(ctx, "ann@example.com", jobs.Filter{Format: jobs.FormatFull}); err != nil {
		t.Fatal(err)
	}
	formats, err := list(ctx, s, func(scan func(...any) error, f *string) error { return scan(f) }, "SELECT format FROM jobs ORDER BY created_at")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"", "", "full", "metadata-first", "full"}, formats); diff != "" {
		t.Errorf("formats of the jobs (-want +got):\n%s", diff)
	}
	job, err := s.Job(ctx, "backfill:ann@example.com")
	if err != nil || job.State != jobs.Running || job.Epoch != 4 || job.Ref().Kind != jobs.MailBackfill {
		t.Errorf("a job of the old database: %+v, %v", job, err)
	}
}
