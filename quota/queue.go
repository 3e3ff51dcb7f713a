package quota

import (
	"context"
	"sync"
	"time"
)

// queue keeps one line of waiting calls per account, API and lane. The zero
// value is ready for use. A line exists as long as somebody stands in it, or has
// a lease that can still be spent from.
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
	// What follows belongs to whoever has the token.
	lease *Lease
	stuck time.Time // when somebody last waited in vain for a place in flight
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
	// Nobody stands in line, so nobody else has the token.
	if l.lease == nil {
		delete(q.lines, l.key)
		return
	}
	lease := l.lease
	time.AfterFunc(lease.life(), func() { q.expire(l, lease) })
}

// returnTimeout bounds how long giving back the rest of a lease may take.
const returnTimeout = 2 * time.Second

// expire gives back the rest of a lease that was left in a line, unless somebody
// came and went on with it.
func (q *queue) expire(l *line, lease *Lease) {
	q.mu.Lock()
	if l.users > 0 || l.lease != lease || lease.life() > 0 {
		q.mu.Unlock()
		return
	}
	l.lease = nil
	delete(q.lines, l.key)
	q.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), returnTimeout)
	defer cancel()
	_ = lease.Return(ctx) // what cannot be given back counts as spent
}
