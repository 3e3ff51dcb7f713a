package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle/meter"
	"headroom/internal/lab/localredis"
	"headroom/internal/redisconn"
	"headroom/jobs"
)

// What kills is made of: the backfills go on for longer than the kills do.
const (
	killsPrices    = "gmail-2026-05"
	killsScale     = 10
	killsMailboxes = 5
	killsMessages  = 2000 // in each
	killsWorkers   = 3
	killsOfWorkers = 20
	killsEvery     = 3 * time.Second
	redisAway      = time.Second
	killsBound     = 6 * time.Minute

	maxKillsRefetch = 0.05
)

// KillsFigures are what kills measured: what backfills lose when their workers, and
// Redis, are killed.
type KillsFigures struct {
	Bench     string  `json:"bench"`
	Messages  int64   `json:"messages"`
	Stored    int64   `json:"stored"`    // of the mailboxes' messages, those that are in the store
	Complete  bool    `json:"complete"`  // every backfill is completed, and no message is missing
	Identical int64   `json:"identical"` // stored with the bytes that the mailbox has
	Doubled   int64   `json:"doubled"`   // counted as stored, or in the store, more than once
	Refetched int64   `json:"refetched"` // bodies that the fake delivered again
	Refetch   float64 `json:"refetched_ratio"`

	WentDown int64 `json:"progress_went_down"` // times that a job's progress was seen to be less than before
	Archived int64 `json:"archived"`           // tasks that Asynq gave up

	Kills      int64 `json:"kills"`      // of workers, each with backfills under way
	TookOver   int64 `json:"taken_over"` // times that a job went on after its owner died
	RedisKills int64 `json:"redis_kills"`

	Refused int64 `json:"refused_by_google"`
	Over    int   `json:"over_limit_windows"`

	Seconds float64 `json:"seconds"`

	states []jobs.State
}

// Broken implements [Figures].
func (f *KillsFigures) Broken() string {
	for _, state := range f.states {
		if state != jobs.Completed {
			return fmt.Sprintf("a backfill is %s", state)
		}
	}
	switch {
	case f.Messages == 0:
		return "nothing was measured"
	case f.Kills < killsOfWorkers || f.RedisKills < 1:
		return fmt.Sprintf("the backfills had ended after %d kills of workers and %d of Redis", f.Kills, f.RedisKills)
	case f.TookOver == 0:
		return "no kill met a worker at work"
	case !f.Complete || f.Stored != f.Messages:
		return fmt.Sprintf("%d of %d messages were stored", f.Stored, f.Messages)
	case f.Identical != f.Messages:
		return fmt.Sprintf("%d of %d messages are identical", f.Identical, f.Messages)
	case f.Doubled > 0:
		return fmt.Sprintf("%d messages were stored or counted twice", f.Doubled)
	case f.Refetch > maxKillsRefetch:
		return fmt.Sprintf("%v of the messages were fetched again, at most %v may be", f.Refetch, maxKillsRefetch)
	case f.WentDown > 0:
		return fmt.Sprintf("progress went down %d times", f.WentDown)
	case f.Archived > 0:
		return fmt.Sprintf("%d tasks were archived", f.Archived)
	case f.Refused > 0 || f.Over > 0:
		return fmt.Sprintf("Google refused %d calls, %d limits were exceeded", f.Refused, f.Over)
	}
	return ""
}

func kills(ctx context.Context, o Options) (_ Figures, err error) {
	if o.Redis != "" {
		return nil, errors.New("bench kills kills its Redis, so it only takes one of its own; leave out --redis")
	}
	ctx, cancel := context.WithTimeout(ctx, killsBound)
	defer cancel()
	began := time.Now()
	redisconn.RouteLog(o.Log)
	redis, err := localredis.Start(ctx, "--appendonly", "yes")
	if err != nil {
		return nil, err
	}
	defer redis.Stop()
	o.Redis = redis.URL()
	redisURL, stop, err := redisFor(ctx, o)
	if err != nil {
		return nil, err
	}
	defer stop()

	m := killRun{
		siteSettings: siteSettings{prices: killsPrices, meter: meter.Sliding, scale: killsScale,
			roles: []app.Role{app.RoleScheduler}, redisURL: redisURL},
		mailboxes: killsMailboxes, messages: killsMessages, workers: killsWorkers,
		kills: killsOfWorkers, every: killsEvery, redis: redis, figures: &KillsFigures{Bench: "kills"},
	}
	if err := m.measure(ctx, o); err != nil {
		return nil, err
	}
	m.figures.Seconds = round(time.Since(began).Seconds())
	return m.figures, nil
}
