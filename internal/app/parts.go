package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// stopTimeout bounds how long one part, or one cleanup, may take to stop.
const stopTimeout = 20 * time.Second

// part is something that runs until its context ends, and returns nil then.
type part struct {
	name string
	run  func(context.Context) error
}

// running is a part and the means to stop it.
type running struct {
	part
	stop context.CancelFunc
	done chan struct{} // closed when run has returned
}

// runParts starts the parts in their order and runs them until ctx ends or one
// of them fails. Then it stops them in reverse order, each after the one before
// has stopped: nothing is put on the queue any more once the workers drain, and
// the pages answer until the end. It returns the first failure.
func runParts(ctx context.Context, log *zap.Logger, parts []part) error {
	failed := make(chan error, len(parts))
	all := make([]running, len(parts))
	for i, p := range parts {
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		all[i] = running{part: p, stop: cancel, done: make(chan struct{})}
		go func() {
			defer close(all[i].done)
			err := p.run(own)
			if err == nil && own.Err() == nil {
				err = errors.New("stopped by itself")
			}
			if err != nil {
				failed <- fmt.Errorf("%s: %w", p.name, err)
			}
		}()
	}
	var first error
	select {
	case <-ctx.Done():
		log.Info("stopping")
	case first = <-failed:
		log.Error("stopping because a part failed", zap.Error(first))
	}
	for i := len(all) - 1; i >= 0; i-- {
		if err := all[i].wait(); err != nil && first == nil {
			first = err
		}
	}
	if first == nil {
		select {
		case first = <-failed:
		default:
		}
	}
	return first
}

// wait stops the part and waits until it has, within bounds.
func (r running) wait() error {
	r.stop()
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-r.done:
		return nil
	case <-timer.C:
		return fmt.Errorf("%s did not stop within %s", r.name, stopTimeout)
	}
}

// cleanups are what must be undone, the last first.
type cleanups []cleanup

type cleanup struct {
	name string
	run  func() error
}

func (c *cleanups) add(name string, run func() error) { *c = append(*c, cleanup{name, run}) }

// run undoes everything once, and reports every error by name.
func (c *cleanups) run() error {
	var errs []error
	for i := len(*c) - 1; i >= 0; i-- {
		if err := (*c)[i].run(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", (*c)[i].name, err))
		}
	}
	*c = nil
	return errors.Join(errs...)
}
