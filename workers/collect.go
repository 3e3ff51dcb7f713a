package workers

import (
	"context"
	"fmt"
	"time"

	"headroom/jobs"
)

const (
	commitSize  = 10                     // commit at least every so many results
	commitDelay = 250 * time.Millisecond // and not later than this after the first
)

// collector commits outcomes in batches. While it runs it has the use of the
// slice's job, progress and recollection.
type collector struct {
	*slice
	halt     func(ending)
	batch    []jobs.Result
	suspects []suspect // faults since something last worked
	broken   bool      // a commit did not succeed: commit no more
}

// suspect is the result of an item whose fault may have been an outage's.
type suspect struct {
	item   jobs.Item
	result jobs.Result
	err    error
}

// run collects until outcomes is closed, and then commits what is left. When
// there have been too many faults in a row to tell whose they are, or one would
// have its item given up, suspects is left for the caller to judge; else it is
// empty.
func (c *collector) run(ctx context.Context, outcomes <-chan outcome) {
	timer := time.NewTimer(commitDelay)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case out, open := <-outcomes:
			if !open {
				if !c.evidence(c.suspects).Doubtful() {
					c.acquit()
				}
				c.flush(ctx)
				return
			}
			empty := len(c.batch) == 0
			c.add(out)
			switch {
			case len(c.batch) >= commitSize:
				timer.Stop()
				c.flush(ctx)
			case empty && len(c.batch) > 0:
				timer.Reset(commitDelay)
			}
		case <-timer.C:
			c.flush(ctx)
		}
	}
}

func (c *collector) add(out outcome) {
	if out.fault != nil {
		c.lasting.streak++
		c.suspects = append(c.suspects, suspect{item: out.item, result: out.result, err: out.fault})
		switch {
		case c.evidence(nil).Doubtful():
			c.halt(ending{how: doubtful})
		case c.lasting.streak >= jobs.FaultStreak: // a probe has just worked
			c.acquit()
		}
		return
	}
	if out.result.Outcome == jobs.ItemStored {
		c.lasting.good = out.result.ID
	}
	c.lasting.streak, c.lasting.worked = 0, time.Now()
	c.acquit()
	c.batch = append(c.batch, out.result)
}

// acquit lets the suspects' results count: their faults were their own.
func (c *collector) acquit() {
	for _, s := range c.suspects {
		c.batch = append(c.batch, s.result)
	}
	c.suspects = nil
}

func (c *collector) flush(ctx context.Context) {
	if len(c.batch) > 0 && !c.broken {
		if err := c.commit(ctx, c.batch); err != nil {
			c.broken = true
			c.halt(*breaks(err))
		}
	}
	c.batch = nil
}

// commit records results and counts them.
func (s *slice) commit(ctx context.Context, results []jobs.Result) (err error) {
	defer func() {
		if p := s.recovered(recover()); p != nil {
			err = p
		}
	}()
	job, err := s.opts.Store.Commit(ctx, s.ref, results)
	if err != nil {
		return fmt.Errorf("commit %d results of job %s: %w", len(results), s.job.ID, err)
	}
	s.job.Progress = job.Progress
	for _, r := range results {
		s.metrics.messages.WithLabelValues(string(r.Outcome)).Inc()
		if r.Outcome != jobs.ItemDeferred {
			s.progress = true
		}
		if r.Outcome == jobs.ItemStored {
			s.metrics.bytes.Add(float64(r.Message.Size))
		}
	}
	return nil
}
