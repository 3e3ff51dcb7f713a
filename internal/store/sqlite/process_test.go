package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

// The test binary runs itself as other processes on the same store, with the
// path in one variable and what to do in the other.
const (
	childEnv  = "HEADROOM_STORE_TEST_CHILD"
	childDoes = "HEADROOM_STORE_TEST_DOES"

	workForEver = "work for ever"
)

// child is the main function of such a process: it works on ann's backfill
// until that has ended, storing ten messages a commit, and prints a line for
// each commit.
func child(path, does string, out io.Writer) int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	s, err := sqlite.Open(ctx, sqlite.Options{Path: path})
	if err != nil {
		fmt.Fprintln(out, "error:", err)
		return 1
	}
	defer s.Close()
	endless := does == workForEver
	for {
		job, err := s.Job(ctx, jobs.BackfillID(ann))
		if err == nil && job.State.Terminal() {
			return 0
		}
		if err == nil {
			err = work(ctx, s, job.Ref(), endless, out)
		}
		switch {
		case err == nil, errors.Is(err, jobs.ErrHeld), errors.Is(err, jobs.ErrStale), errors.Is(err, jobs.ErrSliceDone):
		default:
			fmt.Fprintln(out, "error:", err)
			return 1
		}
	}
}

// work is one slice: one commit, or endless ones, also when nothing is left.
func work(ctx context.Context, s *sqlite.Store, ref jobs.TaskRef, endless bool, out io.Writer) error {
	job, err := s.Claim(ctx, ref, 200*time.Millisecond)
	if err != nil {
		return err
	}
	ref = job.Ref()
	for again := true; again; again = endless {
		items, err := s.NextItems(ctx, ref, 0, 10)
		if err != nil {
			return err
		}
		if len(items) == 0 && !endless {
			_, err := s.Finish(ctx, ref, jobs.Finish{State: jobs.Completed})
			return err
		}
		var results []jobs.Result
		for _, it := range items {
			results = append(results, stored(it.ID))
		}
		if _, err := s.Commit(ctx, ref, results); err != nil {
			return err
		}
		if _, err := s.Renew(ctx, ref, 200*time.Millisecond); err != nil {
			return err
		}
		fmt.Fprintln(out, "committed")
	}
	_, err = s.EndSlice(ctx, ref)
	return err
}

// spawn starts a process; its lines come on the channel, which closes when it
// has ended.
func spawn(t *testing.T, path, does string) (*exec.Cmd, <-chan string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), must[string](t)(os.Executable()))
	cmd.Env = append(os.Environ(), childEnv+"="+path, childDoes+"="+does)
	cmd.Stderr = os.Stderr
	stdout := must[io.ReadCloser](t)(cmd.StdoutPipe())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scan := bufio.NewScanner(stdout); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	return cmd, lines
}

func listedForChildren(t *testing.T, n int) (path string, s *sqlite.Store, ref jobs.TaskRef) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "headroom.db")
	s = open(t, path)
	job := start(t, s)
	must[jobs.Job](t)(s.AddListed(t.Context(), job.Ref(), jobs.Page{IDs: ids(n)}))
	return path, s, must[jobs.Job](t)(s.EndSlice(t.Context(), job.Ref())).Ref()
}

func TestProcessesShareOneJob(t *testing.T) {
	const n = 400
	path, s, _ := listedForChildren(t, n)
	var wg sync.WaitGroup
	commits := make(chan string, 2*n)
	for range 3 {
		cmd, lines := spawn(t, path, "")
		wg.Go(func() {
			for line := range lines {
				commits <- line
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("process: %v", err)
			}
		})
	}
	wg.Wait()
	close(commits)
	total := 0
	for line := range commits {
		if line != "committed" {
			t.Errorf("a process says %q", line)
		}
		total++
	}
	job := must[jobs.Job](t)(s.Job(t.Context(), jobs.BackfillID(ann)))
	if job.State != jobs.Completed || job.Progress.Stored != n || total != n/10 {
		t.Errorf("job is %s, stored %d in %d commits; want %d in %d", job.State, job.Progress.Stored, total, n, n/10)
	}
	if got := must[int64](t)(s.CountMessages(t.Context(), ann)); got != n {
		t.Errorf("%d messages, want %d", got, n)
	}
}

// A process that is killed at any moment leaves whole commits or nothing, and
// its job to whoever claims it when the lease has run out.
func TestKilledProcessesLeaveWholeCommits(t *testing.T) {
	const n = 1500
	path, s, _ := listedForChildren(t, n)
	for kill := range 4 {
		cmd, lines := spawn(t, path, workForEver)
		for range 3 + kill {
			if line, open := <-lines; !open || line != "committed" {
				t.Fatalf("process says %q", line)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for range lines {
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the process ended before it was killed")
		}
		job := must[jobs.Job](t)(s.Job(t.Context(), jobs.BackfillID(ann)))
		count := must[int64](t)(s.CountMessages(t.Context(), ann))
		p := job.Progress
		if p.Stored != count || p.Stored%10 != 0 || p.Bytes != 100*count || job.Epoch != int64(1+kill) {
			t.Errorf("after kill %d: epoch %d, stored %d, bytes %d, messages %d", kill+1, job.Epoch, p.Stored, p.Bytes, count)
		}
	}
	ref := must[jobs.Job](t)(s.Job(t.Context(), jobs.BackfillID(ann))).Ref()
	job := claimExpired(t, s, ref)
	left := must[[]jobs.Item](t)(s.NextItems(t.Context(), job.Ref(), 0, n))
	if int64(len(left))+job.Progress.Stored != n {
		t.Errorf("%d left and %d stored, want %d in all", len(left), job.Progress.Stored, n)
	}
}

// claimExpired claims a slice once the lease of a process that is gone has expired.
func claimExpired(t *testing.T, s *sqlite.Store, ref jobs.TaskRef) jobs.Job {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		job, err := s.Claim(ctx, ref, hour)
		if err == nil {
			return job
		}
		if !errors.Is(err, jobs.ErrHeld) {
			t.Fatalf("Claim = %v", err)
		}
	}
}
