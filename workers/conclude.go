package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"headroom/jobs"
)

// conclude writes down how the slice ended and reports it to Asynq. The first result
// is the outcome for the metrics, unless the caller has given a better one.
func (s *slice) conclude(ctx context.Context, r result, outcome string) (string, error) {
	r = s.withHint(s.orGiveUp(r))
	name := map[stopReason]string{timeUp: "continued", deferred: "deferred", refused: "refused", broken: "backed-off", lost: "lost"}[r.reason]
	if r.reason == finished {
		name = string(r.finish.State)
	}
	if outcome == "" {
		outcome = name
	}
	s.charge(ctx)
	err := s.write(ctx, r)
	if errors.Is(err, jobs.ErrStale) {
		return "lost", nil
	}
	if err != nil && isFailure(err) {
		return "error", err
	}
	if s.left != "" && !s.left.Live() {
		outcome = string(s.left)
	}
	return outcome, err
}

// charge notes what the slice has spent. Only the shares of others depend on it, so a
// slice that cannot note it is none the worse.
func (s *slice) charge(ctx context.Context) {
	units := s.spent.Take()
	if units == 0 {
		return
	}
	if err := s.opts.Store.Charge(ctx, s.ref, units); err != nil && !errors.Is(err, jobs.ErrStale) {
		s.log.Warn("what a slice has spent was not noted", s.logJob(zap.Int64("units", units), zap.Error(err))...)
	}
}

func (s *slice) write(ctx context.Context, r result) error {
	s.cache.set(s.job.ID, s.memo)
	switch r.reason {
	case timeUp:
		return s.endSlice(ctx)
	case deferred:
		return s.wait(ctx, jobs.Park{For: r.why, Until: r.until})
	case refused:
		return s.waitForQuota(ctx, r)
	case broken:
		return s.backOff(ctx, r)
	case finished:
		return s.finish(ctx, r.finish)
	}
	// Lost. If Asynq ended the run it has filed the task already, and the
	// lease runs out by itself; if the store did, there is nothing to do.
	s.log.Warn("slice lost", s.logJob(zap.Error(r.err))...)
	return nil
}

// endSlice ends the slice and enqueues its successor. If the second step fails, a
// rerun finds the slice done and makes up for it.
func (s *slice) endSlice(ctx context.Context) error {
	job, err := s.opts.Store.EndSlice(ctx, s.ref)
	if err != nil {
		return fmt.Errorf("end slice %s: %w", s.ref.TaskID(), err)
	}
	if s.rests(job) || job.Admission == jobs.NotAdmitted {
		return nil
	}
	return s.queue.Put(ctx, job.Ref())
}

// rests notes the state in which the slice has left its job, and reports whether
// it rests there as somebody wanted.
func (s *slice) rests(job jobs.Job) bool {
	s.left = job.State
	if job.State.Live() {
		return false
	}
	s.cache.forget(job.ID)
	s.log.Info("job rests as asked", zap.String("job", job.ID), zap.String("state", string(job.State)))
	return true
}

// waitForQuota requeues a refused slice until the moment that was named, or for twice
// as long as the time before when nothing was done in between: then others were
// quicker, and the moment was not worth much. The end of a cooldown is, since the ledger
// lets nobody in before it, and makes it longer each time by itself.
func (s *slice) waitForQuota(ctx context.Context, r result) error {
	until, longest := r.until, maxBackoff/time.Duration(s.opts.Scale)
	if until.IsZero() {
		until = s.now().Add(r.wait)
	}
	if r.label == ledgerLabel {
		longest = ledgerBackoff
	}
	if !r.exact && !s.progress && s.job.Refusals > 0 {
		until = until.Add(jobs.Doubled(r.wait, s.job.Refusals, longest) - r.wait)
	}
	s.metrics.requeued.WithLabelValues(r.label).Inc()
	if s.job.Refusals == 0 { // logged once, however long it lasts
		switch r.label {
		case googleLabel:
			s.log.Warn("Google refuses calls for quota; the job waits and comes back by itself",
				s.logJob(zap.String("for", r.why), zap.Time("until", until))...)
		case diskLabel:
			s.log.Error("the store's disk is full; the job waits and goes on once there is room",
				s.logJob(zap.String("for", r.why))...)
		}
	}
	return s.wait(ctx, jobs.Park{For: r.why, Until: until, Refused: true})
}

// orGiveUp turns a slice in which something broke into the end of its job when
// that has happened too often with no progress between, unless it may pass.
func (s *slice) orGiveUp(r result) result {
	if r.reason != broken {
		return r
	}
	failures := s.failuresBefore()
	state, over := jobs.GivesUp(r.err, failures, s.opts.FailureBudget)
	if !over {
		return r
	}
	end := endsAs(state, fmt.Sprintf("gave up after %d failures in a row without progress, the last: %v", failures+1, r.err))
	end.hint = "fix the cause"
	return end
}

// withHint adds to a job's last error what is to be done, and how a job of its kind
// is started again then.
func (s *slice) withHint(r result) result {
	if r.hint == "" {
		return r
	}
	again := "start the backfill again"
	switch s.job.Kind {
	case jobs.MailSync:
		again = "ask for the sync again with: headroom sync " + s.job.Account
	case jobs.CalendarSync:
		again = "ask for the sync again with: headroom calendar sync " + s.job.Account
	}
	r.finish.Error += "; " + r.hint + ", then " + again
	return r
}

// failuresBefore counts the failures since the last progress, without this slice's.
func (s *slice) failuresBefore() int {
	if s.progress {
		return 0
	}
	return s.job.Failures
}

// backOff requeues a slice in which something broke.
func (s *slice) backOff(ctx context.Context, r result) error {
	failures := s.failuresBefore()
	log := s.log.Warn
	if failures > 0 && r.passes { // logged before; the scheduler says how many jobs it keeps waiting
		log = s.log.Debug
	}
	log("slice failed", s.logJob(zap.Int("failures", failures+1), zap.Error(r.err))...)
	now := s.now()
	until := now.Add(jobs.FaultWait(failures, s.opts.Scale))
	if r.until.After(until) {
		until = r.until
	}
	since := ""
	if failures > 0 {
		since = jobs.Since(s.job.FailingSince)
	}
	return s.wait(ctx, jobs.Park{For: clip(r.why) + since, Until: until, Failure: clip(r.err.Error())})
}

// wait puts the job into the state waiting, and has its task requeued.
func (s *slice) wait(ctx context.Context, p jobs.Park) error {
	wait := p.Until.Sub(s.now())
	job, err := s.opts.Store.Park(ctx, s.ref, p)
	if err != nil {
		return fmt.Errorf("have job %s wait for %s: %w", s.job.ID, p.For, err)
	}
	if s.rests(job) || job.Admission == jobs.NotAdmitted {
		return nil
	}
	return &RequeueError{Job: s.job.ID, For: p.For, Until: p.Until, Delay: max(wait, 0)}
}

func (s *slice) finish(ctx context.Context, f jobs.Finish) error {
	job, err := s.opts.Store.Finish(ctx, s.ref, f)
	if err != nil {
		return fmt.Errorf("finish job %s as %s: %w", s.job.ID, f.State, err)
	}
	s.left = job.State
	if job.State.Live() { // items of it are to be tried again
		if job.Admission == jobs.NotAdmitted {
			return nil
		}
		return s.queue.Put(ctx, job.Ref())
	}
	if job.Short() {
		s.log.Warn("the listing was far shorter than the profile promised", zap.String("job", job.ID),
			zap.Int64("listed", job.Progress.Listed), zap.Int64("promised", job.Progress.Expected))
	}
	s.cache.forget(s.job.ID)
	level := zap.InfoLevel
	if job.State == jobs.Failed || job.State == jobs.Blocked { // someone should look
		level = zap.ErrorLevel
	}
	s.log.Log(level, "job finished", zap.String("job", s.job.ID), zap.String("state", string(job.State)), zap.String("reason", f.Error))
	return nil
}
