package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"headroom/jobs"
)

// conclude writes down how the slice ended and says so to Asynq. The first
// result is the outcome for the metrics, unless the caller has given a better
// one.
func (s *slice) conclude(ctx context.Context, end ending, outcome string) (string, error) {
	end = s.hinted(s.orGiveUp(end))
	name := map[how]string{goesOn: "continued", paused: "deferred", refused: "refused", broke: "backed-off", lost: "lost"}[end.how]
	if end.how == ends {
		name = string(end.fin.State)
	}
	if outcome == "" {
		outcome = name
	}
	s.account(ctx)
	err := s.write(ctx, end)
	if errors.Is(err, jobs.ErrStale) {
		return "lost", nil
	}
	if _, parked := errors.AsType[*ParkedError](err); err != nil && !parked {
		return "error", err
	}
	if s.left != "" && !s.left.Live() {
		outcome = string(s.left)
	}
	return outcome, err
}

// account notes what the slice has spent. Nothing but the shares of others hangs
// on it, so a slice that cannot is none the worse.
func (s *slice) account(ctx context.Context) {
	units := s.spent.Take()
	if units == 0 {
		return
	}
	if err := s.opts.Store.Charge(ctx, s.ref, units); err != nil && !errors.Is(err, jobs.ErrStale) {
		s.log.Warn("what a slice has spent was not noted", zap.String("job", s.job.ID), zap.Int64("units", units), zap.Error(err))
	}
}

func (s *slice) write(ctx context.Context, end ending) error {
	s.memory.set(s.job.ID, s.lasting)
	switch end.how {
	case goesOn:
		return s.handOver(ctx)
	case paused:
		return s.park(ctx, jobs.Park{For: end.why, Until: end.until}, time.Until(end.until))
	case refused:
		return s.waitForQuota(ctx, end)
	case broke:
		return s.backOff(ctx, end)
	case ends:
		return s.finish(ctx, end.fin)
	}
	// Lost. If Asynq ended the run it has filed the task already, and the
	// lease runs out by itself; if the store did, there is nothing to do.
	s.log.Warn("slice lost", zap.String("job", s.job.ID), zap.Error(end.err))
	return nil
}

// handOver ends the slice and enqueues its successor. Should the second step
// fail, a rerun finds the slice done and makes up for it.
func (s *slice) handOver(ctx context.Context) error {
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
	s.memory.forget(job.ID)
	s.log.Info("job rests as asked", zap.String("job", job.ID), zap.String("state", string(job.State)))
	return true
}

// waitForQuota parks a refused slice until the moment that was named, or for
// twice as long as the time before when nothing was done in between: then others
// were quicker, and the moment was not worth much. The end of a cool-down is, since
// the ledger lets nobody in before it, and makes it longer each time by itself.
func (s *slice) waitForQuota(ctx context.Context, end ending) error {
	until, longest := end.until, maxBackoff/time.Duration(s.opts.Scale)
	if end.label == ledgerLabel {
		longest = ledgerBackoff
	}
	if !end.sure && !s.progress && s.job.Refusals > 0 {
		until = until.Add(doubled(end.wait, s.job.Refusals, longest) - end.wait)
	}
	s.metrics.requeued.WithLabelValues(end.label).Inc()
	if end.label == googleLabel && s.job.Refusals == 0 { // said once, however long it lasts
		s.log.Warn("Google refuses calls for quota; the job waits and comes back by itself",
			zap.String("job", s.job.ID), zap.String("for", end.why), zap.Time("until", until))
	}
	if end.label == diskLabel && s.job.Refusals == 0 {
		s.log.Error("the store's disk is full; the job waits and goes on once there is room",
			zap.String("job", s.job.ID), zap.String("for", end.why))
	}
	return s.park(ctx, jobs.Park{For: end.why, Until: until, Refused: true}, time.Until(until))
}

// orGiveUp turns a slice in which something broke into the end of its job when
// that has happened too often with no progress between, unless it may pass.
func (s *slice) orGiveUp(end ending) ending {
	if end.how != broke {
		return end
	}
	failures := s.failuresBefore()
	state, over := jobs.GivesUp(end.err, failures, s.opts.FailureBudget)
	if !over {
		return end
	}
	return ending{how: ends, fin: jobs.Finish{State: state, Error: fmt.Sprintf(
		"gave up after %d failures in a row without progress, the last: %v", failures+1, end.err)}, mend: "mend the cause"}
}

// failuresBefore counts the failures since the last progress, this slice's aside.
func (s *slice) failuresBefore() int {
	if s.progress {
		return 0
	}
	return s.job.Failures
}

// backOff parks a slice in which something broke.
func (s *slice) backOff(ctx context.Context, end ending) error {
	failures := s.failuresBefore()
	log := s.log.Warn
	if failures > 0 && end.fades { // said before; the scheduler says how many jobs it keeps waiting
		log = s.log.Debug
	}
	log("slice failed", zap.String("job", s.job.ID), zap.Int("failures", failures+1), zap.Error(end.err))
	wait := max(jobs.FaultWait(failures, s.opts.Scale), time.Until(end.until))
	since := ""
	if failures > 0 {
		since = jobs.Since(s.job.FailingSince)
	}
	return s.park(ctx, jobs.Park{For: clip(end.why) + since, Until: time.Now().Add(wait), Failure: clip(end.err.Error())}, wait)
}

func (s *slice) park(ctx context.Context, p jobs.Park, wait time.Duration) error {
	job, err := s.opts.Store.Park(ctx, s.ref, p)
	if err != nil {
		return fmt.Errorf("park job %s, which waits for %s: %w", s.job.ID, p.For, err)
	}
	if s.rests(job) || job.Admission == jobs.NotAdmitted {
		return nil
	}
	return &ParkedError{Job: s.job.ID, For: p.For, Until: p.Until, Delay: max(wait, 0)}
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
	s.memory.forget(s.job.ID)
	level := zap.InfoLevel
	if job.State == jobs.Failed || job.State == jobs.Blocked { // someone should look
		level = zap.ErrorLevel
	}
	s.log.Log(level, "job finished", zap.String("job", s.job.ID), zap.String("state", string(job.State)), zap.String("reason", f.Error))
	return nil
}
