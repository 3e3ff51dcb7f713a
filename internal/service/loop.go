// Package service holds what the long-running parts of a process have in common: they
// check their options, and they repeat rounds of work until their context ends. It does
// not know what the work is.
package service

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// A Loop repeats rounds of work. Name, Every or WaitFunc, RoundFunc and Log are required.
type Loop struct {
	Name  string        // what a round does, for the log, such as "look for due syncs"
	Every time.Duration // from the begin of a round to that of the next; the first begins at once
	// WaitFunc, if set, replaces Every. It returns how long to wait before the next
	// round, given how long the last one took; that is negative before the first round.
	// There is no further round if WaitFunc returns a negative wait.
	WaitFunc func(took time.Duration) time.Duration

	Timeout   time.Duration // bound on one round; none if zero
	RoundFunc func(context.Context) error

	Failed  prometheus.Counter  // counts rounds that failed; may be nil
	Seconds prometheus.Observer // observes how long rounds took; may be nil
	Log     *zap.Logger
}

// Run repeats rounds until ctx ends, and returns nil then. A round that fails is counted
// and the next one tries again. A row of failures is logged once, and so is its end. A
// round that the end of ctx cuts off has not failed. Run must not be called twice at the
// same time.
func (l Loop) Run(ctx context.Context) error {
	failing := false
	for took := time.Duration(-1); ; {
		wait := l.wait(took)
		if wait < 0 {
			<-ctx.Done()
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		began := time.Now()
		err := l.round(ctx)
		took = time.Since(began)
		if l.Seconds != nil {
			l.Seconds.Observe(took.Seconds())
		}
		switch {
		case err != nil && ctx.Err() != nil:
		case err != nil:
			if l.Failed != nil {
				l.Failed.Inc()
			}
			if !failing {
				l.Log.Error(l.Name+" failed; the next round tries again", zap.Error(err))
			}
			failing = true
		case failing:
			l.Log.Info(l.Name + " succeeds again")
			failing = false
		}
	}
}

func (l Loop) wait(took time.Duration) time.Duration {
	switch {
	case l.WaitFunc != nil:
		return l.WaitFunc(took)
	case took < 0:
		return 0
	}
	return max(0, l.Every-took)
}

func (l Loop) round(ctx context.Context) error {
	if l.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.Timeout)
		defer cancel()
	}
	return l.RoundFunc(ctx)
}
