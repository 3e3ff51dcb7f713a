package app

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/redisconn"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

// Steered is a job that somebody steered.
type Steered struct {
	Job     jobs.Job `json:"job"`
	Changed bool     `json:"changed"` // false: it was so already
}

// Retried is a job of which failed items were made pending again.
type Retried struct {
	Job     jobs.Job `json:"job"`
	Retried int      `json:"retried"`
}

// A TaskQueue is where the task of a job's next slice is put.
type TaskQueue interface {
	Put(ctx context.Context, ref jobs.TaskRef) error
}

// An Operator steers backfills as people ask. A backfill is named by its id, or
// by its account: that names all of the account's, and those whose state does not
// allow what was asked for are left alone as long as one's does. The errors are
// [jobs.ErrNotFound], and a [*jobs.StateError] where no state allows it.
type Operator struct {
	Store *sqlite.Store
	Queue TaskQueue // Pause and Cancel do without
	Log   *zap.Logger
}

// Pause brings backfills to a stop, within seconds, that Resume ends.
func (o Operator) Pause(ctx context.Context, name string) ([]Steered, error) {
	return o.each(ctx, name, o.Store.Pause)
}

// Cancel ends backfills within seconds; what was stored stays.
func (o Operator) Cancel(ctx context.Context, name string) ([]Steered, error) {
	return o.each(ctx, name, o.Store.Cancel)
}

// Resume makes backfills go on that were paused, or blocked until the account acted.
func (o Operator) Resume(ctx context.Context, name string) ([]Steered, error) {
	all, err := o.each(ctx, name, o.Store.Resume)
	for _, s := range all {
		o.put(ctx, s.Job)
	}
	return all, err
}

// RetryFailed makes backfills try again those items that they gave up and the
// filter chooses.
func (o Operator) RetryFailed(ctx context.Context, name string, f jobs.FailureFilter) ([]Retried, error) {
	var all []Retried
	_, err := o.each(ctx, name, func(ctx context.Context, id string) (jobs.Job, bool, error) {
		job, n, err := o.Store.RetryFailed(ctx, id, f)
		if err == nil {
			all = append(all, Retried{Job: job, Retried: n})
			o.put(ctx, job)
		}
		return job, n > 0, err
	})
	return all, err
}

// each does something to all backfills of a name.
func (o Operator) each(ctx context.Context, name string, do func(context.Context, string) (jobs.Job, bool, error)) ([]Steered, error) {
	all, err := Backfills(ctx, o.Store, name)
	if err != nil {
		return nil, err
	}
	var steered []Steered
	var refused []error
	for _, j := range all {
		job, changed, err := do(ctx, j.ID)
		if _, ok := errors.AsType[*jobs.StateError](err); ok {
			refused = append(refused, err)
			continue
		}
		if err != nil {
			return steered, err
		}
		steered = append(steered, Steered{Job: job, Changed: changed})
	}
	if len(steered) == 0 {
		return nil, errors.Join(refused...)
	}
	return steered, nil
}

// put puts the next slice of a job that waits for nothing on the queue. The row is
// the truth: where this does not work, the scheduler makes the task.
func (o Operator) put(ctx context.Context, job jobs.Job) {
	if job.State != jobs.Queued || job.Admission == jobs.NotAdmitted { // or the scheduler gives it a place first
		return
	}
	if err := o.Queue.Put(ctx, job.Ref()); err != nil {
		o.Log.Warn("job recorded, but not put on the queue; the scheduler will do it", zap.String("job", job.ID), zap.Error(err))
	}
}

// Backfills returns the backfills of a name, the oldest first: the one with that
// id, which may also be that of a sync, or all of the account with that
// address. The error is [jobs.ErrNotFound]
// when there is none.
func Backfills(ctx context.Context, s *sqlite.Store, name string) ([]jobs.Job, error) {
	if strings.HasPrefix(name, jobs.BackfillID("")) || strings.HasPrefix(name, jobs.SyncID("")) || strings.HasPrefix(name, jobs.CalendarID("")) {
		job, err := s.Job(ctx, name)
		if errors.Is(err, jobs.ErrNotFound) {
			return nil, missing("no backfill %s; headroom backfill list names all", name)
		}
		return []jobs.Job{job}, err
	}
	all, err := s.AccountJobs(ctx, name)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(j jobs.Job) bool { return j.Kind != jobs.MailBackfill })
	if len(all) == 0 {
		return nil, missing("no backfill of %s; start it with: headroom backfill start %s", name, name)
	}
	return all, nil
}

// WithOperator runs do with an operator on the settings' store and, where queue is
// true, on their Redis. Without Redis nothing is written then.
func WithOperator(ctx context.Context, cfg config.Config, queue bool, log *zap.Logger, do func(Operator) error) (err error) {
	s, err := OpenStore(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	o := Operator{Store: s, Log: log}
	if queue {
		redisconn.RouteLog(log)
		redis, err := connectQueues(ctx, cfg, s, log)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, redis.Close()) }()
		o.Queue = queuesByKind(redis, cfg)
	}
	return do(o)
}
