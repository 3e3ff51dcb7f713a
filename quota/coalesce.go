package quota

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	maxPipelines = 2   // pipelines under way at once
	maxBatch     = 256 // calls in one pipeline

	maxTries      = 4                     // for a call that Redis says it did not run
	redirectPause = 20 * time.Millisecond // before the second; doubled with each
)

// errNotSent says that a call was given up before it was sent: nothing was
// charged.
var errNotSent = errors.New("not sent")

// A coalescer sends the script calls of many goroutines in few round trips: what
// is waiting when a pipeline comes back goes with the next one. A caller whose
// context ends leaves alone; the others of its pipeline are not touched.
//
// It has no goroutine of its own while nobody calls. It runs as long as
// there are calls, and each pipeline is bounded by the timeouts of the client.
// (The client's own AutoPipeline runs a call whose context has ended, and lets
// it wait for a stalled server past its deadline: go-redis 9.23.)
type coalescer struct {
	rdb redis.UniversalClient

	mu      sync.Mutex
	waiting []*scriptCall
	running int // pipelines
}

// scriptCall is one script call on its way.
type scriptCall struct {
	script *redis.Script
	keys   []string
	args   []any
	state  atomic.Int32 // callWaiting, then either of the others
	source bool         // send the script itself, not its hash
	done   chan struct{}
	cmd    *redis.Cmd // set before done is closed
}

const (
	callWaiting = iota
	callSent
	callAbandoned
)

// eval runs a script. When ctx ends first, the error wraps errNotSent if the
// call was not sent yet; otherwise its outcome is unknown.
func (c *coalescer) eval(ctx context.Context, script *redis.Script, keys []string, args []any) ([]int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotSent, context.Cause(ctx))
	}
	call := &scriptCall{script: script, keys: keys, args: args, done: make(chan struct{})}
	c.mu.Lock()
	c.waiting = append(c.waiting, call)
	if c.running < maxPipelines {
		c.running++
		go c.run()
	}
	c.mu.Unlock()
	select {
	case <-call.done:
		return call.cmd.Int64Slice()
	case <-ctx.Done():
		if call.state.CompareAndSwap(callWaiting, callAbandoned) {
			return nil, fmt.Errorf("%w: %w", errNotSent, context.Cause(ctx))
		}
		return nil, context.Cause(ctx)
	}
}

// run sends pipelines until nobody waits.
func (c *coalescer) run() {
	for {
		c.mu.Lock()
		n := min(len(c.waiting), maxBatch)
		if n == 0 {
			c.running--
			c.mu.Unlock()
			return
		}
		batch := make([]*scriptCall, 0, n)
		for _, call := range c.waiting[:n] {
			if call.state.CompareAndSwap(callWaiting, callSent) {
				batch = append(batch, call)
			}
		}
		rest := copy(c.waiting, c.waiting[n:])
		clear(c.waiting[rest:])
		c.waiting = c.waiting[:rest]
		c.mu.Unlock()
		c.send(batch)
	}
}

// send runs one pipeline, and again what Redis said that it did not run: a script
// that it has forgotten, after a restart or SCRIPT FLUSH, goes with its source;
// a key that has moved to another node of a cluster is looked for anew.
func (c *coalescer) send(batch []*scriptCall) {
	again := batch
	for try := range maxTries {
		if c.pipeline(again); try == maxTries-1 {
			break
		}
		var unrun []*scriptCall
		moved := false
		for _, call := range again {
			switch err := call.cmd.Err(); {
			case redis.HasErrorPrefix(err, "NOSCRIPT"):
				call.source = true
				unrun = append(unrun, call)
			case redirected(err):
				moved = true
				unrun = append(unrun, call)
			}
		}
		if again = unrun; len(again) == 0 {
			break
		}
		if moved {
			time.Sleep(redirectPause << try) // the client asks the cluster for its slots meanwhile
		}
	}
	for _, call := range batch {
		close(call.done)
	}
}

// redirected reports whether a node of a cluster said that a key is elsewhere.
func redirected(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK") || redis.HasErrorPrefix(err, "TRYAGAIN")
}

// pipeline sends calls together. Callers' contexts do not end it: they end what
// the caller waits for. Every command carries its own error.
func (c *coalescer) pipeline(batch []*scriptCall) {
	if len(batch) == 0 {
		return
	}
	ctx := context.Background()
	p := c.rdb.Pipeline()
	for _, call := range batch {
		if call.source {
			call.cmd = call.script.Eval(ctx, p, call.keys, call.args...)
		} else {
			call.cmd = call.script.EvalSha(ctx, p, call.keys, call.args...)
		}
	}
	if _, err := p.Exec(ctx); err != nil {
		for _, call := range batch {
			if call.cmd.Err() == nil && call.cmd.Val() == nil {
				call.cmd.SetErr(err) // it was not even sent
			}
		}
	}
}

// notRun reports whether an error of Redis says that the script did not run.
func notRun(err error) bool {
	if errors.Is(err, errNotSent) {
		return true
	}
	for _, prefix := range []string{"NOSCRIPT", "LOADING", "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "READONLY", "MASTERDOWN", "NOAUTH", "OOM", "BUSY", "MISCONF", "NOREPLICAS"} {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return err != nil && (strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "does not let us run INFO"))
}
