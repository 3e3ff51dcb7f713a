package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle"
	"headroom/jobs"
)

// TestLargeMessagesNeedLittleMemory brings messages of 6 MB, ten at a time,
// with a worker whose memory is bounded, and asks the operating system how much
// it took at most.
func TestLargeMessagesNeedLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 60 MB")
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	const many, size, most = 10, 6_000_000, 110 << 10 // KiB; with all of them in memory it would be more
	r := newSiteOf(t, fakegoogle.Options{Scale: 100}, map[string]int{ann: 0})
	for range many {
		r.fake.Mailbox(ann).AddLarge(size)
	}
	t.Setenv("GOMEMLIMIT", "256MiB")
	t.Setenv("HEADROOM_WORKER_IN_FLIGHT", "10")
	r.run(app.RoleScheduler)
	worker := r.worker(path)
	s := r.open()
	job, calls := r.filtered(s, jobs.Filter{})
	if job.State != jobs.Completed || job.Progress.Bytes != many*size || calls[methodGet] != many {
		t.Errorf("%+v after %v, want %d messages of %d bytes fetched once", job, calls, many, size)
	}
	r.arrived(s)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", worker.Process.Pid))
	if err != nil {
		t.Skipf("nobody tells how much memory the worker took: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		var peak int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &peak); n == 1 {
			t.Logf("resident memory at most: %d MiB", peak>>10)
			if peak > most {
				t.Errorf("resident memory was %d KiB at most, want %d", peak, most)
			}
		}
	}
}
