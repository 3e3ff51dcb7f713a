package workers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"go.uber.org/zap"

	"headroom/jobs"
	"headroom/quota"
)

// Workers runs slices. Make one with [New].
type Workers struct {
	opts    Options
	metrics *metrics
	log     *zap.Logger
	cache   *jobCache
}

// New returns Workers that serve nothing yet, or all that is wrong with o.
func New(o Options) (*Workers, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Workers{opts: o, metrics: newMetrics(o.Registerer), log: o.Log.Named("workers"), cache: newJobCache()}, nil
}

// Run serves the lanes until ctx ends, and then drains: no new slices are
// taken, running ones commit what they have, enqueue their successors and end,
// within about a second; after Options.ShutdownTimeout they are cut off, and
// their tasks go back to the queue. Run returns nil because ctx ended. It may
// be called again, but not twice at once.
func (w *Workers) Run(ctx context.Context) error {
	draining, drain := context.WithCancel(context.WithoutCancel(ctx))
	defer drain()
	var running sync.WaitGroup
	var servers []*asynq.Server
	for _, lane := range w.opts.Lanes {
		h := w.handler(draining, lane)
		server := asynq.NewServerFromRedisClient(w.opts.Redis, w.config(lane))
		err := server.Start(asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
			running.Add(1)
			defer running.Done()
			return h.ProcessTask(ctx, t)
		}))
		if err != nil {
			drain()
			return errors.Join(fmt.Errorf("start the server of lane %s: %w", lane, err), w.shutDown(servers, &running))
		}
		servers = append(servers, server)
	}
	w.log.Info("workers started", zap.Any("lanes", w.opts.Lanes))
	<-ctx.Done()
	w.log.Info("workers draining")
	// Stop taking tasks before slices end, so that no server takes the
	// successors of its own; but do not let a Redis that is away hold it up.
	within(500*time.Millisecond, func() { forAll(servers, (*asynq.Server).Stop) })
	drain()
	return w.shutDown(servers, &running)
}

// shutDown shuts the servers down and waits for their slices.
func (w *Workers) shutDown(servers []*asynq.Server, running *sync.WaitGroup) error {
	const grace = 2 * time.Second // for the servers' own last writes
	ended := within(w.opts.ShutdownTimeout+grace, func() {
		forAll(servers, (*asynq.Server).Shutdown)
		running.Wait()
	})
	if !ended {
		return fmt.Errorf("workers did not end within %s; jobs that were cut off go on when their lease ends", w.opts.ShutdownTimeout+grace)
	}
	return nil
}

func (w *Workers) handler(draining context.Context, lane quota.Lane) *handler {
	return &handler{
		opts: w.opts, lane: lane, draining: draining,
		queue: &jobs.Queue{
			Client:  asynq.NewClientFromRedisClient(w.opts.Redis),
			Name:    jobs.QueueName(w.opts.QueuePrefix, string(lane)),
			Timeout: w.opts.TaskTimeout,
		},
		cache: w.cache, metrics: w.metrics, log: w.log.With(zap.String("lane", string(lane))),
	}
}

// config is the configuration of a lane's server. Each lane has a server of its
// own: in a shared one, slices that wait for quota would hold every slot that
// interactive work needs.
func (w *Workers) config(lane quota.Lane) asynq.Config {
	concurrency, idle := w.opts.Concurrency, 50*time.Millisecond
	switch lane {
	case quota.Interactive:
		concurrency, idle = 16, 20*time.Millisecond
	case quota.Sync:
		concurrency, idle = 64, 35*time.Millisecond
	}
	log := w.opts.Log.Named("asynq").With(zap.String("lane", string(lane)))
	return asynq.Config{
		Concurrency:              concurrency,
		Queues:                   map[string]int{jobs.QueueName(w.opts.QueuePrefix, string(lane)): 1},
		TaskCheckInterval:        idle,
		DelayedTaskCheckInterval: 250 * time.Millisecond,
		ShutdownTimeout:          w.opts.ShutdownTimeout,
		IsFailure:                isFailure,
		RetryDelayFunc:           retryDelay(w.opts.NowFunc),
		Logger:                   log.Sugar(),
		LogLevel:                 asynq.WarnLevel,
		ErrorHandler: asynq.ErrorHandlerFunc(func(_ context.Context, t *asynq.Task, err error) {
			if isFailure(err) { // else it is called for every task that waits
				log.Error("task failed", zap.ByteString("task", t.Payload()), zap.Error(err))
			}
		}),
	}
}

// within runs f and reports whether it returned in time. One that did not goes
// on by itself.
func within(limit time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// forAll calls f for all servers at once and waits.
func forAll(servers []*asynq.Server, f func(*asynq.Server)) {
	var wg sync.WaitGroup
	for _, server := range servers {
		wg.Go(func() { f(server) })
	}
	wg.Wait()
}
