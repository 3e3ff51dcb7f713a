package quota

import (
	"context"
	"sync"
	"time"
)

// queue keeps one line of waiting calls per account, API and lane. The zero
// value is ready for use. A line exists as long as somebody stands in it.
type queue struct {
	mu    sync.Mutex
	lines map[lineKey]*line
}

type lineKey struct {
	project, user, api string
	lane               Lane
}

type line struct {
	key   lineKey
	turn  chan struct{} // holds one token: whoever has it is first in line
	users int           // guarded by queue.mu

	// What the first in line was told last, for those behind it. Only the
	// holder of the turn reads and writes it.
	lastDenied *DeniedError
	until      time.Time // on the local clock
}

// enter waits until the caller is first in line, or ctx ends. The caller must
// leave the line that it got.
func (q *queue) enter(ctx context.Context, key lineKey) (*line, error) {
	q.mu.Lock()
	l := q.lines[key]
	if l == nil {
		l = &line{key: key, turn: make(chan struct{}, 1)}
		l.turn <- struct{}{}
		if q.lines == nil {
			q.lines = map[lineKey]*line{}
		}
		q.lines[key] = l
	}
	l.users++
	q.mu.Unlock()
	select {
	case <-l.turn:
		return l, nil
	case <-ctx.Done():
		q.forget(l)
		return nil, context.Cause(ctx)
	}
}

// leave lets the next in line have its turn.
func (q *queue) leave(l *line) {
	l.turn <- struct{}{}
	q.forget(l)
}

func (q *queue) forget(l *line) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(q.lines, l.key)
	}
}

// deny remembers a refusal for those who stand behind the caller.
func (l *line) deny(e *DeniedError) {
	l.lastDenied, l.until = e, time.Now().Add(e.RetryAfter)
}

// denied repeats the last refusal to a call that asks for at least as much,
// as long as it holds.
func (l *line) denied(cost int64) *DeniedError {
	if l.lastDenied == nil || cost < l.lastDenied.Cost {
		return nil
	}
	left := time.Until(l.until)
	if left <= 0 {
		return nil
	}
	again := *l.lastDenied
	again.Cost, again.RetryAfter = cost, left
	return &again
}
