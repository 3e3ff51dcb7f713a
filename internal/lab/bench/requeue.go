package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/rig"
	"headroom/jobs"
	"headroom/quota"
)

// What requeue is made of: at scale 1, under a ceiling so low that nearly every
// message has to wait for longer than a slice may wait in place.
const (
	requeueAccount  = "ann@example.com"
	requeueMessages = 25
	requeueLimit    = 375 // units a minute; 80 % of it, the backfill's ceiling, are 300
	requeueBound    = 5 * time.Minute
)

// RequeueFigures are what requeue measured.
type RequeueFigures struct {
	Bench    string  `json:"bench"`
	Messages int     `json:"messages"`
	Ceiling  int     `json:"ceiling_units"`
	Stored   int64   `json:"stored"`
	Requeued int64   `json:"requeued"`      // times that the job went back to the queue
	Seen     bool    `json:"seen_in_retry"` // Asynq's Inspector showed the task in retry, its error naming limit and moment
	Retried  int     `json:"retried_max"`   // retries that Asynq counted
	Archived int     `json:"archived"`
	Failed   int     `json:"failed"`      // by Asynq's count
	Process  int     `json:"processed"`   // slices, by Asynq's count
	EarlyMax float64 `json:"early_s_max"` // most that a task ran again before its moment
	LateMax  float64 `json:"late_s_max"`  // most that a task ran again after its moment
	LateMean float64 `json:"late_s_mean"` //
	Refused  int64   `json:"refused_by_google"`
	Example  string  `json:"error_in_retry"` // as the web UI shows it
	Seconds  float64 `json:"seconds"`
}

// Broken implements [Figures].
func (f *RequeueFigures) Broken() string {
	switch {
	case f.Stored != requeueMessages:
		return fmt.Sprintf("%d of %d messages were stored", f.Stored, requeueMessages)
	case f.Requeued == 0 || !f.Seen:
		return "no refused task was seen in retry with its limit and moment"
	case f.Retried > 0 || f.Archived > 0 || f.Failed > 0:
		return fmt.Sprintf("waiting cost %d retries, %d failures, %d archived tasks", f.Retried, f.Failed, f.Archived)
	case f.Process == 0:
		return "progress does not count as processed"
	case f.LateMax > 3:
		return fmt.Sprintf("a task ran again %.2f s after its moment", f.LateMax)
	case f.EarlyMax > 0:
		return fmt.Sprintf("a task ran again %.2f s before its moment", f.EarlyMax)
	case f.Refused > 0:
		return fmt.Sprintf("Google refused %d calls", f.Refused)
	}
	return ""
}

func requeue(ctx context.Context, o Options) (Figures, error) {
	ctx, cancel := context.WithTimeout(ctx, requeueBound)
	defer cancel()
	redisURL, stop, err := redisFor(ctx, o)
	if err != nil {
		return nil, err
	}
	defer stop()
	redisOptions, err := redis.ParseURL(redisURL)
	if err != nil {
		return nil, err
	}
	rdb := redis.NewClient(redisOptions)
	defer rdb.Close()

	f := &RequeueFigures{Bench: "requeue", Messages: requeueMessages,
		Ceiling: int(requeueLimit * quota.ModeDefault.Lanes()[quota.Backfill].Ceiling)}
	set := siteSettings{scale: 1, limit: requeueLimit, redisURL: redisURL}
	fill := func(fake *fakegoogle.Server) error { return load(fake, []string{requeueAccount}, requeueMessages) }
	return f, set.run(ctx, o, fill, func(ctx context.Context, s *site) error {
		began := time.Now()
		w := &requeueWatch{site: s, figures: f, inspector: asynq.NewInspectorFromRedisClient(rdb),
			queue: jobs.QueueName(s.Config.Redis.QueuePrefix, string(quota.Backfill))}
		if _, err := s.start(ctx, requeueAccount, jobs.Filter{}); err != nil {
			return err
		}
		if err := w.untilDone(ctx); err != nil {
			return err
		}
		f.Refused = s.Fake.Meter().Refused()
		f.Seconds = round(time.Since(began).Seconds())
		return nil
	})
}

// requeueWatch inspects the queue as an operator's tools do.
type requeueWatch struct {
	*site
	inspector *asynq.Inspector
	queue     string
	figures   *RequeueFigures

	moment time.Time // of the task that waits; zero: none waits
	late   []float64
}

// momentIn finds the limit and the moment in the error of a task that waits.
var momentIn = regexp.MustCompile(`user-minute.*until (\d{4}-\d\d-\d\dT[0-9:.]+Z)`)

func (w *requeueWatch) untilDone(ctx context.Context) error {
	done, err := rig.Follow(ctx, w.process.Store(), []string{jobs.BackfillID(requeueAccount)}, 10*time.Millisecond, func(_ time.Time, all []jobs.Job) error {
		job := all[0]
		w.progress(float64(job.Progress.Stored)/requeueMessages, "%d of %d stored, requeued %d times, %s",
			job.Progress.Stored, requeueMessages, job.Requeued, job.State)
		return w.look(job)
	})
	if err != nil {
		return err
	}
	return w.conclude(ctx, done[0])
}

// look notes a task in retry, and how late it runs again once it has left.
func (w *requeueWatch) look(job jobs.Job) error {
	tasks, err := w.inspector.ListRetryTasks(w.queue)
	if errors.Is(err, asynq.ErrQueueNotFound) {
		return nil // nothing was put on it yet
	}
	if err != nil {
		return fmt.Errorf("list the tasks in retry: %w", err)
	}
	for _, task := range tasks {
		w.figures.Retried = max(w.figures.Retried, task.Retried)
		found := momentIn.FindStringSubmatch(task.LastErr)
		if found == nil {
			continue
		}
		moment, err := time.Parse(time.RFC3339Nano, found[1])
		if err != nil {
			return fmt.Errorf("the moment in %q: %w", task.LastErr, err)
		}
		w.figures.Seen, w.figures.Example, w.moment = true, task.LastErr, moment
	}
	if len(tasks) == 0 && !w.moment.IsZero() && job.State == jobs.Running {
		w.late = append(w.late, time.Since(w.moment).Seconds())
		w.moment = time.Time{}
	}
	return nil
}

func (w *requeueWatch) conclude(ctx context.Context, job jobs.Job) error {
	f := w.figures
	f.Stored, f.Requeued = job.Progress.Stored, job.Requeued
	for _, late := range w.late {
		f.LateMax, f.EarlyMax = max(f.LateMax, late), max(f.EarlyMax, -late)
		f.LateMean += late / float64(len(w.late))
	}
	f.LateMax, f.EarlyMax, f.LateMean = round(f.LateMax), round(f.EarlyMax), round(f.LateMean)
	// Asynq counts a task a moment after its handler returned.
	for deadline := time.Now().Add(5 * time.Second); ; {
		info, err := w.inspector.GetQueueInfo(w.queue)
		if err != nil {
			return fmt.Errorf("ask the queue: %w", err)
		}
		f.Archived, f.Failed, f.Process = info.Archived, info.Failed, info.Processed
		if info.Active == 0 || time.Now().After(deadline) {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// round keeps three decimals.
func round(v float64) float64 { return math.Round(v*1000) / 1000 }
