package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/hibiken/asynq"
	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/redisconn"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
	"headroom/quota"
	"headroom/scheduler"
)

// syncQueue is where slices of live syncs go.
func syncQueue(c *redisconn.Clients, cfg config.Config) *jobs.Queue {
	return &jobs.Queue{
		Client: asynq.NewClientFromRedisClient(c.Short),
		Name:   jobs.QueueName(cfg.Redis.QueuePrefix, string(quota.Sync)),
	}
}

// byKind puts each task on the queue of its job's kind.
type byKind map[jobs.Kind]*jobs.Queue

// Put implements [TaskQueue].
func (q byKind) Put(ctx context.Context, ref jobs.TaskRef) error { return q[ref.Kind].Put(ctx, ref) }

func queuesByKind(c *redisconn.Clients, cfg config.Config) byKind {
	return byKind{jobs.MailBackfill: backfillQueue(c, cfg), jobs.MailSync: syncQueue(c, cfg), jobs.CalendarSync: syncQueue(c, cfg)}
}

// queues are those that the scheduler watches, by kind of job.
func (a *App) queues() scheduler.Queues {
	live := scheduler.NewAsynqQueue(syncQueue(a.redis, a.cfg), a.redis.Short)
	return scheduler.Queues{
		jobs.MailBackfill: scheduler.NewAsynqQueue(a.backfillQueue(), a.redis.Short),
		jobs.MailSync:     live,
		jobs.CalendarSync: live,
	}
}

// addSyncs adds what makes live syncs start when they are due.
func (a *App) addSyncs(queues scheduler.Queues) error {
	s, err := scheduler.NewSyncs(scheduler.SyncOptions{
		Store: a.store, Calendars: a.store, Queue: queues, Log: a.opts.Log, Registerer: a.opts.Registry,
	})
	if err != nil {
		return err
	}
	a.parts = append(a.parts, part{"syncs", s.Run})
	return nil
}

// SyncAsked is a live sync that was asked for.
type SyncAsked struct {
	Job     jobs.Job `json:"job"`
	Started bool     `json:"started"` // false: one is under way, and another follows it
}

// StartSync asks for a live sync of an account's mailbox now. One that is under
// way goes on, and the history is read again after it.
func StartSync(ctx context.Context, cfg config.Config, email string, log *zap.Logger) (asked SyncAsked, err error) {
	if _, err := Projects(cfg); err != nil {
		return SyncAsked{}, err
	}
	s, err := OpenStore(ctx, cfg, log)
	if errors.Is(err, ErrNoStore) {
		return SyncAsked{}, unknownAccount(cfg, email)
	}
	if err != nil {
		return SyncAsked{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	redis, err := connectQueues(ctx, cfg, s, log)
	if err != nil {
		return SyncAsked{}, err
	}
	defer func() { err = errors.Join(err, redis.Close()) }()
	return startSync(ctx, cfg, s, redis, email, log)
}

// noSyncError says why there can be no live sync of a mailbox now.
type noSyncError struct{ error }

func (e *noSyncError) Unwrap() error { return e.error }

// startSync is [StartSync] where the store and Redis are open.
func startSync(ctx context.Context, cfg config.Config, s *sqlite.Store, redis *redisconn.Clients, email string, log *zap.Logger) (asked SyncAsked, err error) {
	asked.Job, asked.Started, err = s.StartSync(ctx, email)
	switch {
	case errors.Is(err, jobs.ErrNotFound):
		return SyncAsked{}, unknownAccount(cfg, email)
	case errors.Is(err, jobs.ErrNoCursor):
		return SyncAsked{}, &noSyncError{fmt.Errorf("live sync of %s goes on from where a backfill of its whole mailbox began, and there was none; start it with: headroom backfill start %s", email, email)}
	case err != nil:
		return SyncAsked{}, err
	case asked.Job.State == jobs.Paused:
		return SyncAsked{}, &noSyncError{fmt.Errorf("the live sync of %s is paused; resume it with: headroom backfill resume %s", email, asked.Job.ID)}
	case !asked.Started:
		return asked, nil
	}
	if err := syncQueue(redis, cfg).Put(ctx, asked.Job.Ref()); err != nil {
		// The row is the truth: the scheduler makes its task.
		log.Warn("job recorded, but not put on the queue; the scheduler will do it", zap.String("job", asked.Job.ID), zap.Error(err))
	}
	return asked, nil
}
