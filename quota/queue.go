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
	// When somebody last waited in vain for a place in flight. It belongs to whoever
	// has the token.
	stuck time.Time
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
	if l.users--; l.users > 0 {
		return
	}
	delete(q.lines, l.key)
}
