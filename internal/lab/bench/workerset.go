package bench

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"

	"headroom/internal/lab/rig"
)

// A workerSet runs workers as processes of their own, so that they can be killed. It
// replaces those that die at once, as an orchestrator would.
type workerSet struct {
	command  string
	settings string // path of the file
	environ  []string
	killed   atomic.Int64

	mu     sync.Mutex
	alive  []*exec.Cmd
	wanted map[*exec.Cmd]bool // killed by this set
}

func newWorkerSet(r *rig.Rig, redisURL string) (*workerSet, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the command itself: %w", err)
	}
	path, err := r.WriteSettings()
	if err != nil {
		return nil, err
	}
	return &workerSet{command: self, settings: path, environ: append(os.Environ(), "HEADROOM_LOG_LEVEL=error", "HEADROOM_REDIS_URL="+redisURL),
		wanted: map[*exec.Cmd]bool{}}, nil
}

// keepOne runs a worker until ctx ends, and starts another when it is killed. A
// worker that ends by itself is an error.
func (q *workerSet) keepOne(ctx context.Context) error {
	for {
		cmd, log := exec.CommandContext(ctx, q.command, "run", "--roles", "worker", "--config", q.settings), new(bytes.Buffer)
		cmd.Env, cmd.Stdout, cmd.Stderr = q.environ, log, log
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("start a worker: %w", err)
		}
		q.mu.Lock()
		q.alive = append(q.alive, cmd)
		q.mu.Unlock()
		err := cmd.Wait()
		wanted := q.gone(cmd)
		switch {
		case ctx.Err() != nil:
			return nil
		case !wanted:
			return fmt.Errorf("a worker ended by itself: %v: %s", err, bytes.TrimSpace(log.Bytes()))
		}
	}
}

// gone forgets a process that has ended, and reports whether it was killed.
func (q *workerSet) gone(cmd *exec.Cmd) (wanted bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, other := range q.alive {
		if other == cmd {
			q.alive = append(q.alive[:i], q.alive[i+1:]...)
			break
		}
	}
	wanted = q.wanted[cmd]
	delete(q.wanted, cmd)
	return wanted
}

// killOne kills a random worker.
func (q *workerSet) killOne() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.alive) == 0 {
		return
	}
	cmd := q.alive[rand.N(len(q.alive))]
	q.wanted[cmd] = true
	if cmd.Process.Kill() == nil {
		q.killed.Add(1)
	}
}
