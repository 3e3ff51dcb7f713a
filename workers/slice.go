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
	opts     Options // with defaults
	lane     quota.Lane
	queue    successors
	draining context.Context // ends when slices should stop
	cache    *jobCache
	metrics  *metrics
	log      *zap.Logger
}

func (h *handler) now() time.Time { return h.opts.NowFunc() }

// A slice is one run of one task, from its claim on: what runs of all kinds of jobs
// need. Its fields belong to the goroutine that runs the slice. Others only read job,
// ref and account, call Google and the store, and ask whether the slice is stopping.
type slice struct {
	*handler
	job       jobs.Job // the row as last returned
	ref       jobs.TaskRef
	account   jobs.Account
	workUntil time.Time // when to start no more work
	progress  bool      // something was committed
	memo      jobMemo
	spent     quota.Tally
	left      jobs.State // the state that the slice has left the job in; "": not yet, or lost

	draining context.Context // ends when this slice should stop: by stop, or with the handler's
	stop     context.CancelFunc
	calls    callWindow
}

// A run is the work of a slice on one kind of job.
type run interface {
	run(ctx context.Context) result
}

// ProcessTask runs the slice that the task names. It returns nil when the task
// is done with, a [*RequeueError] when it should run again later, and another
// error when not even that could be written down.
func (h *handler) ProcessTask(ctx context.Context, t *asynq.Task) (err error) {
	started, outcome := h.now(), "error"
	defer func() {
		if p := h.recovered(recover()); p != nil {
			err = p
		}
		h.metrics.slices.WithLabelValues(string(h.lane), outcome).Inc()
		h.metrics.sliceSeconds.WithLabelValues(string(h.lane)).Observe(h.now().Sub(started).Seconds())
	}()

	ref, err := jobs.ParseTask(t)
	if err != nil { // it will never mean anything: drop it
		h.log.Error("drop a task", zap.Error(err))
		outcome = "malformed"
		return nil
	}
	outcome, err = h.runSlice(ctx, ref)
	return err
}

// runSlice claims the job, works, and concludes. It returns the slice's outcome for
// the metrics.
func (h *handler) runSlice(ctx context.Context, ref jobs.TaskRef) (string, error) {
	asked := h.now()
	job, err := h.opts.Store.Claim(ctx, ref, h.opts.Lease)
	switch {
	case errors.Is(err, jobs.ErrStale), errors.Is(err, jobs.ErrNotFound):
		h.cache.forget(ref.Job)
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

	claimed := granted(job, h.opts.Lease, asked, h.now())
	s := &slice{
		handler: h, job: job, ref: job.Ref(),
		workUntil: h.workEnd(ctx, claimed), memo: h.cache.get(job.ID),
	}
	s.draining, s.stop = context.WithCancel(h.draining)
	defer s.stop()
	if s.ref.Epoch != ref.Epoch {
		// The row was taken over from a run that died. This task's id belongs
		// to the old epoch, so the work continues under a task of the new one.
		h.log.Info("take over a job", zap.String("job", job.ID), zap.Int64("epoch", s.ref.Epoch))
		return s.conclude(ctx, result{reason: timeUp}, "taken-over")
	}

	leased, release := s.keepLease(ctx, claimed)
	r := s.work(leased)
	if leased.Err() != nil {
		r = lostFor(leased)
	}
	release() // first: a renewal after the last write would be refused as stale
	return s.conclude(ctx, r, "")
}

// heldUntil requeues a task whose job another run still holds: it comes back when
// that run's lease ends, to take over or to find the slice done.
func (h *handler) heldUntil(ref jobs.TaskRef, job jobs.Job) error {
	until := job.LeaseUntil
	if latest := h.now().Add(h.opts.Lease); until.IsZero() || until.After(latest) {
		until = latest
	}
	return &RequeueError{Job: ref.Job, For: "the lease of another run", Until: until, Delay: until.Sub(h.now())}
}

// work does the slice's work and returns why it ended. A panic in it is a failure
// of the job.
func (s *slice) work(ctx context.Context) (r result) {
	defer func() {
		if p := s.recovered(recover()); p != nil {
			r = failedForGood(p)
		}
	}()
	account, err := s.opts.Store.Account(ctx, s.job.Account)
	if errors.Is(err, jobs.ErrNotFound) {
		r := blocked(fmt.Errorf("account %s of job %s: %w", s.job.Account, s.job.ID, err))
		r.hint = "add it"
		return r
	}
	if err != nil {
		return failed(fmt.Errorf("account %s of job %s: %w", s.job.Account, s.job.ID, err))
	}
	s.account = account
	s.openCalls(quota.WithTally(ctx, &s.spent))
	defer s.calls.close()
	var work run
	switch s.job.Kind {
	case jobs.MailBackfill:
		work = newBackfillRun(s)
	case jobs.MailSync:
		work = newSyncRun(s)
	case jobs.CalendarSync:
		work = newCalendarRun(s)
	default:
		return failedForGood(fmt.Errorf("job %s is of kind %q, which this version of the worker does not know", s.job.ID, s.job.Kind))
	}
	return work.run(ctx)
}

// logJob returns the fields that every line of the log has about the slice.
func (s *slice) logJob(more ...zap.Field) []zap.Field {
	return append([]zap.Field{zap.String("job", s.job.ID)}, more...)
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
