package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headroom/internal/app"
	"headroom/internal/control"
	"headroom/jobs"
)

// TestABackfillWaitsWhileTheDiskIsFull: nothing that found no room is counted, the
// job says which folder is full, and goes on by itself once there is room.
func TestABackfillWaitsWhileTheDiskIsFull(t *testing.T) {
	for _, full := range []string{"database", "blobs"} {
		t.Run(full, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			mount := func(options string) error {
				return exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).Run()
			}
			if os.Geteuid() != 0 || mount("size=1500k") != nil {
				t.Skip("only root may mount a small disk")
			}
			t.Cleanup(func() {
				if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
					t.Errorf("umount %s: %v: %s", dir, err, out)
				}
			})
			r := newSite(t, 150)
			if full == "database" {
				// Its blobs have room. What is left for its log is soon used up.
				r.cfg.Store.Path = filepath.Join(dir, "headroom.db")
				if _, err := r.control().AddAccount(t.Context(), ann, "main", control.Assignment{}); err != nil {
					t.Fatal(err)
				}
				fill(t, dir, 100<<10)
			} else {
				r.cfg.Store.Blobs = filepath.Join(dir, "blobs")
				fill(t, dir, 300<<10)
			}
			r.startBackfill()
			a := r.run(app.RoleScheduler, app.RoleWorker)
			j := r.wait(a.Store(), "waiting for room", func(j jobs.Job) bool {
				// Not even that can be written where the database is full: the lease lapses.
				return strings.Contains(j.WaitingFor, "the disk is full: make room in "+dir) ||
					full == "database" && !j.LeaseUntil.IsZero() && time.Now().After(j.LeaseUntil)
			})
			if j.Failures != 0 || j.Progress.Failed != 0 {
				t.Errorf("a full disk counts as %d failures of the job and %d messages", j.Failures, j.Progress.Failed)
			}
			if n, _, err := a.Store().CountFound(t.Context(), ann, jobs.MessageFilter{}); err != nil || n != j.Progress.Stored {
				t.Errorf("%d messages are stored, %v, but %d are counted", n, err, j.Progress.Stored)
			}
			if err := mount("remount,size=200m"); err != nil {
				t.Fatal(err)
			}
			if j := r.wait(a.Store(), "ended", terminal); j.State != jobs.Completed || j.Progress.Stored != 150 {
				t.Errorf("job = %+v, want all 150 messages", j)
			}
			r.arrived(a.Store())
		})
	}
}

// fill leaves so much of a small disk.
func fill(t *testing.T, dir string, left int) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for chunk := make([]byte, 4<<10); ; {
		if _, err := f.Write(chunk); err != nil {
			break
		}
	}
	at, err := f.Seek(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(max(0, at-int64(left))); err != nil {
		t.Fatal(err)
	}
}
