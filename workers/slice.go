package workers

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/hibiken/asynq"
	"go.uber.org/zap"

	"headroom/jobs"
	"headroom/quota"
)

// inPlace is the longest wait that is spent inside a slice; the queue, which
// keeps due times in whole seconds, takes the longer ones.
const inPlace = time.Second

// handler runs the slices of one lane. It implements [asynq.Handler].
type handler struct {
	opts    Options // with defaults
	lane    quota.Lane
	queue   successors
	drain   <-chan struct{} // closed when slices should stop
	memory  *memory
	metrics *metrics
	log     *zap.Logger
}

// slice is one run of one task, from its claim on. Its fields belong to the
// goroutine that runs the slice, unless that has lent them to another.
type slice struct {
	*handler
	job      jobs.Job // the row as last returned
	ref      jobs.TaskRef
	user     jobs.Account
	box      Mailbox
	patient  Mailbox   // the same, for calls that may wait longer in place
	threads  int       // get a thread from so many of its messages on; 0: never
	over     time.Time // when to start no more work
	progress bool      // something was committed
	lasting  recollection
	unlisted *ending // why the listing did not end; what it brought is fetched first
	spent    quota.Tally
	left     jobs.State // the state that the slice has left the job in; "": not yet, or lost

	drain <-chan struct{} // closed when this slice should stop: by stop, or with the handler's
	stop  func()          // may be called any number of times

	access *access // of the account, which answers about single items may blame

	labels  []jobs.Label    // of the mailbox, once they were asked for
	changed bool            // the history that this slice has read is not empty
	asked   map[string]bool // pages that live sync has asked for

	snapshot jobs.Snapshot // of the whole mailbox, which a sync reads besides
}

// ProcessTask runs the slice that the task names. It returns nil when the task
// is done with, a [*ParkedError] when it should run again later, and another
// error when not even that could be written down.
func (h *handler) ProcessTask(ctx context.Context, t *asynq.Task) (err error) {
	started, outcome := time.Now(), "error"
	defer func() {
		if p := h.recovered(recover()); p != nil {
			err = p
		}
		h.metrics.slices.WithLabelValues(string(h.lane), outcome).Inc()
		h.metrics.sliceSeconds.WithLabelValues(string(h.lane)).Observe(time.Since(started).Seconds())
	}()

	ref, err := jobs.ParseTask(t)
	if err != nil { // it will never mean anything: drop it
		h.log.Error("drop a task", zap.Error(err))
		outcome = "malformed"
		return nil
	}
	outcome, err = h.run(ctx, ref)
	return err
}

// run claims the job, works, and concludes. It returns the slice's outcome for
// the metrics.
func (h *handler) run(ctx context.Context, ref jobs.TaskRef) (string, error) {
	asked := time.Now()
	job, err := h.opts.Store.Claim(ctx, ref, h.opts.Lease)
	switch {
	case errors.Is(err, jobs.ErrStale), errors.Is(err, jobs.ErrNotFound):
		h.memory.forget(ref.Job)
		return "stale", nil
	case errors.Is(err, jobs.ErrSliceDone):
		next := ref.Next()
		if job.ID != "" {
			next = job.Ref() // the row may be further still
		}
		if job.Admission == jobs.NotAdmitted {
			return "done-before", nil
		}
		return "done-before", h.queue.Put(ctx, next)
	case errors.Is(err, jobs.ErrHeld):
		return "held", h.heldUntil(ref, job)
	case err != nil:
		return "error", fmt.Errorf("claim slice %s: %w", ref.TaskID(), err)
	}

	claimed := granted(job, h.opts.Lease, asked, time.Now())
	s := &slice{
		handler: h, job: job, ref: job.Ref(),
		over: h.end(ctx, claimed), lasting: h.memory.get(job.ID),
	}
	defer s.listen()()
	if s.ref.Epoch != ref.Epoch {
		// The row was taken over from a run that died. This task's id belongs
		// to the old epoch, so the work goes on under a task of the new one.
		h.log.Info("take over a job", zap.String("job", job.ID), zap.Int64("epoch", s.ref.Epoch))
		return s.conclude(ctx, ending{how: goesOn}, "taken-over")
	}

	leased, release := s.keepLease(ctx, claimed)
	end := s.work(leased)
	if leased.Err() != nil {
		end = ending{how: lost, err: context.Cause(leased)}
	}
	release() // first: a renewal after the last write would be refused as stale
	return s.conclude(ctx, end, "")
}

// heldUntil parks a task whose job another run still holds: it comes back when
// that run's lease ends, to take over or to find the slice done.
func (h *handler) heldUntil(ref jobs.TaskRef, job jobs.Job) error {
	until := job.LeaseUntil
	if latest := time.Now().Add(h.opts.Lease); until.IsZero() || until.After(latest) {
		until = latest
	}
	return &ParkedError{Job: ref.Job, For: "the lease of another run", Until: until, Delay: time.Until(until)}
}

// work does the slice's work and says how it ended. A panic in it is a failure
// of the job's.
func (s *slice) work(ctx context.Context) (end ending) {
	defer func() {
		if p := s.recovered(recover()); p != nil {
			end = *persists(p)
		}
	}()
	list := s.list
	switch s.job.Kind {
	case jobs.MailBackfill:
	case jobs.MailSync:
		list = s.sync
	case jobs.CalendarSync:
	default:
		return *persists(fmt.Errorf("job %s is of kind %q, which this version of the worker does not know", s.job.ID, s.job.Kind))
	}
	account, err := s.opts.Store.Account(ctx, s.job.Account)
	if errors.Is(err, jobs.ErrNotFound) {
		end := blocks(fmt.Errorf("account %s of job %s: %w", s.job.Account, s.job.ID, err))
		end.mend = "add it"
		return *end
	}
	if err != nil {
		return *breaks(fmt.Errorf("account %s of job %s: %w", s.job.Account, s.job.ID, err))
	}
	s.user = account
	calls, done := s.callContext(ctx)
	defer done()
	calls = quota.WithTally(calls, &s.spent)
	if s.job.Kind == jobs.CalendarSync {
		return s.syncCalendars(ctx, calls, account)
	}
	s.box, err = s.opts.Google.Mailbox(calls, account, s.lane, inPlace)
	if err != nil {
		return *endingOfCall(ctx, calls, fmt.Errorf("open mailbox %s: %w", account.Email, err), time.Now())
	}
	if s.job.Filter.Bodies() == jobs.FormatFull {
		if s.patient, err = s.opts.Google.Mailbox(calls, account, s.lane, attachmentWait); err != nil {
			return *endingOfCall(ctx, calls, fmt.Errorf("open mailbox %s: %w", account.Email, err), time.Now())
		}
	}
	s.access = newAccess(func(ctx context.Context) error { _, err := s.box.Profile(ctx); return err })
	s.threads = ThreadsFrom(s.opts.PricesFunc(account.Project), s.job.Filter.Format)
	// Each slice of a sync begins with the history: what it has to fetch may have
	// been deleted, and reading the whole mailbox takes many slices.
	if s.job.ListsOn() || s.job.Kind == jobs.MailSync {
		if end := list(ctx, calls); end != nil && end != s.unlisted {
			return *end
		}
		if s.job.Kind == jobs.MailSync { // however long the history took, what it left has a slice's time
			s.over = s.end(ctx, time.Now())
		}
	}
	return s.fetch(ctx, calls)
}

// recovered turns what recover returned into an error, logged and counted.
func (h *handler) recovered(p any) error {
	if p == nil {
		return nil
	}
	h.metrics.panics.Inc()
	h.log.Error("panic in a slice", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
	return fmt.Errorf("panic: %v", p)
}
