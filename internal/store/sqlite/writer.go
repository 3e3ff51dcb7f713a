package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"go.uber.org/zap"
)

// How much one transaction of a writer may take in.
const (
	groupSize = 64                    // operations
	groupTime = 20 * time.Millisecond // after this no further operation is begun
)

// urgency says which of the waiting operations go first.
type urgency int

const (
	// ahead is for the small writes that keep a lease or give it back: a
	// healthy owner must not lose its job to the line of those that bring work.
	ahead urgency = iota
	inLine
)

var errClosed = errors.New("the store is closed")

// writer does all the writing of one process, from one goroutine. What waits is
// taken together: one transaction holds many operations, each in a savepoint of
// its own, so that one that fails undoes nothing of the others. Nobody is
// answered before the transaction is committed.
type writer struct {
	db    *sql.DB // one connection
	path  string  // of the database
	clock func() int64
	log   *zap.Logger

	mu      sync.Mutex
	waiting [inLine + 1][]*operation
	closed  bool
	wake    chan struct{} // holds something when an operation may be waiting
	ended   chan struct{} // closed when run has returned

	session *session // run's; nil until needed, and after a fault
}

// operation is one caller's write.
type operation struct {
	ctx  context.Context // the caller's, without its end
	fn   func(context.Context, *tx) error
	done chan error // holds one
}

// newWriter starts a writer; ctx is for its own statements, and must not end.
func newWriter(ctx context.Context, db *sql.DB, path string, clock func() int64, log *zap.Logger) *writer {
	w := &writer{db: db, path: path, clock: clock, log: log, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go w.run(ctx)
	return w
}

// do has fn run in a transaction, and returns its error, or that of the commit.
// When ctx ends before fn's turn it never runs. Once begun it is not cut off:
// SQLite would take the operations beside it back as well.
func (w *writer) do(ctx context.Context, u urgency, fn func(context.Context, *tx) error) error {
	op := &operation{ctx: context.WithoutCancel(ctx), fn: fn, done: make(chan error, 1)}
	if err := w.join(ctx, u, op); err != nil {
		return err
	}
	select {
	case err := <-op.done:
		return w.noRoom(err)
	case <-ctx.Done():
		if w.leave(u, op) {
			return fmt.Errorf("wait for the turn to write: %w", ctx.Err())
		}
		return w.noRoom(<-op.done)
	}
}

func (w *writer) join(ctx context.Context, u urgency, op *operation) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("wait for the turn to write: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errClosed
	}
	w.waiting[u] = append(w.waiting[u], op)
	w.poke()
	return nil
}

// poke wakes run. W.mu must be held.
func (w *writer) poke() {
	select {
	case w.wake <- struct{}{}:
	default: // it is awake, or will be
	}
}

// leave takes an operation out of the line, unless its turn has come.
func (w *writer) leave(u urgency, op *operation) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, other := range w.waiting[u] {
		if other == op {
			w.waiting[u] = append(w.waiting[u][:i:i], w.waiting[u][i+1:]...)
			return true
		}
	}
	return false
}

// next takes the first operation out of the line, or returns nil.
func (w *writer) next() *operation {
	w.mu.Lock()
	defer w.mu.Unlock()
	for u, line := range w.waiting {
		if len(line) > 0 {
			w.waiting[u] = line[1:]
			return line[0]
		}
	}
	return nil
}

func (w *writer) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting[ahead])+len(w.waiting[inLine]) == 0
}

// close refuses further operations, waits for those in line, and ends run.
func (w *writer) close() {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.wake)
	}
	w.mu.Unlock()
	<-w.ended
}

// run writes until the writer is closed.
func (w *writer) run(ctx context.Context) {
	defer close(w.ended)
	for open := true; open; {
		_, open = <-w.wake
		for !w.idle() {
			w.group(ctx)
		}
	}
	w.drop()
}

// group runs what waits in one transaction, and answers.
func (w *writer) group(ctx context.Context) {
	if err := w.begin(ctx); err != nil {
		err = fmt.Errorf("begin transaction: %w", err)
		for op := w.next(); op != nil; op = w.next() {
			op.done <- err
		}
		return
	}
	var written []*operation
	var broken error
	for since := time.Now(); broken == nil && len(written) < groupSize && time.Since(since) < groupTime; {
		op := w.next()
		if op == nil {
			break
		}
		failed, fault := w.step(op)
		if failed != nil {
			op.done <- failed
		} else {
			written = append(written, op)
		}
		broken = fault
	}
	err := w.end(ctx, broken)
	for _, op := range written {
		op.done <- err
	}
}

// begin takes the database's write lock, for which other processes let it wait
// up to busyTimeout.
func (w *writer) begin(ctx context.Context) (err error) {
	if w.session == nil {
		if w.session, err = newSession(ctx, w.db); err != nil {
			return err
		}
	}
	if _, err = w.session.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		w.drop()
	}
	return err
}

// end commits, unless the transaction is broken: then all of it is taken back.
func (w *writer) end(ctx context.Context, broken error) error {
	err := broken
	if err == nil {
		_, err = w.session.ExecContext(ctx, "COMMIT")
	}
	if err == nil {
		return nil
	}
	// SQLite may have rolled back by itself, so an error here says nothing.
	_, _ = w.session.ExecContext(ctx, "ROLLBACK")
	w.drop()
	return fmt.Errorf("commit transaction: %w", err)
}

// step runs one operation in a savepoint. Failed is the operation's error, of
// which nothing is left; fault that the transaction itself is broken.
func (w *writer) step(op *operation) (failed, fault error) {
	s := w.session
	if _, err := s.ExecContext(op.ctx, "SAVEPOINT operation"); err != nil {
		return err, err
	}
	if failed = w.attempt(op); failed != nil {
		if _, err := s.ExecContext(op.ctx, "ROLLBACK TO operation"); err != nil {
			return failed, err
		}
	}
	if _, err := s.ExecContext(op.ctx, "RELEASE operation"); err != nil {
		return errors.Join(failed, err), err
	}
	return failed, nil
}

// attempt runs an operation's function. A panic in it is its error.
func (w *writer) attempt(op *operation) (err error) {
	defer func() {
		if p := recover(); p != nil {
			w.log.Error("panic in a write", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return op.fn(op.ctx, &tx{querier: w.session, now: w.clock()})
}

// drop gives up the session; the next transaction makes a new one.
func (w *writer) drop() {
	if w.session != nil {
		if err := w.session.close(); err != nil {
			w.log.Warn("close the writing connection", zap.Error(err))
		}
		w.session = nil
	}
}
