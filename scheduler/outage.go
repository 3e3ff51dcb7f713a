package scheduler

import (
	"time"

	"go.uber.org/zap"

	"headroom/jobs"
)

// alarmAfter is how long a job must have failed before it is worth an alarm: one
// fault passes unnoticed.
const alarmAfter = time.Minute

// stuck is the jobs of a project that wait for a fault to pass.
type stuck struct {
	jobs  int
	since time.Time // the first of them
	cause string    // what that waits for
}

// watchFaults shows which projects' jobs wait for a fault to pass, and says so once
// when it begins and once when it is over: an outage makes one alarm for all jobs.
func (s *Scheduler) watchFaults(live []jobs.Job, now time.Time) {
	projects := map[string]*stuck{}
	for name := range s.stuck {
		projects[name] = &stuck{} // shown as 0 when it is over
	}
	for _, job := range live {
		if job.Failures == 0 || job.QuotaWait || job.FailingSince.IsZero() || now.Sub(job.FailingSince) < alarmAfter {
			continue
		}
		p := projects[job.Project]
		if p == nil {
			p = &stuck{}
			projects[job.Project] = p
		}
		if p.jobs++; p.since.IsZero() || job.FailingSince.Before(p.since) {
			p.since, p.cause = job.FailingSince, job.LastError
		}
	}
	for name, p := range projects {
		s.metrics.stuck.WithLabelValues(name).Set(float64(p.jobs))
		seconds := 0.0
		if p.jobs > 0 {
			seconds = now.Sub(p.since).Seconds()
		}
		s.metrics.stuckSeconds.WithLabelValues(name).Set(seconds)
		switch was := s.stuck[name]; {
		case p.jobs > 0 && !was:
			s.opts.Log.Error("jobs wait for a fault to pass; they go on by themselves", zap.String("project", name),
				zap.Int("jobs", p.jobs), zap.Time("since", p.since), zap.String("cause", p.cause))
			s.stuck[name] = true
		case p.jobs == 0 && was:
			s.opts.Log.Info("no job waits for a fault to pass any more", zap.String("project", name))
			s.stuck[name] = false
		}
	}
}
