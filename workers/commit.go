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

// A collector commits outcomes in batches. It has its own copy of what it changes,
// which the pass takes over once it has ended.
type collector struct {
	*stopper
	m         *mailRun
	breaker   breaker
	committed committed
	batch     []jobs.Result
	suspects  []suspect // faults since something last worked
	failing   bool      // a commit did not succeed: commit no more
}

// A suspect is the result of an item whose fault may be an outage's.
type suspect struct {
	item   jobs.Item
	result jobs.Result
	err    error
}

// run collects until outcomes is closed, and then commits what is left. If there have
// been too many faults in a row to tell whose they are, or one would have its item
// given up, suspects is left for the caller to decide on; else it is empty.
func (c *collector) run(ctx context.Context, outcomes <-chan outcome) {
	timer := time.NewTimer(commitDelay)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case out, open := <-outcomes:
			if !open {
				if !c.m.evidence(c.breaker, c.suspects).Doubtful() {
					c.countFaults()
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
		c.breaker.streak++
		c.suspects = append(c.suspects, suspect{item: out.item, result: out.result, err: out.fault})
		switch {
		case c.m.evidence(c.breaker, nil).Doubtful():
			c.stop(result{reason: suspected})
		case c.breaker.streak >= jobs.FaultStreak: // a probe has just worked
			c.countFaults()
		}
		return
	}
	if out.result.Outcome == jobs.ItemStored {
		c.breaker.goodID = out.result.ID
	}
	c.breaker.streak, c.breaker.worked = 0, c.m.now()
	c.countFaults()
	c.batch = append(c.batch, out.result)
}

// countFaults lets the suspects' results count: their faults were their own.
func (c *collector) countFaults() {
	for _, s := range c.suspects {
		c.batch = append(c.batch, s.result)
	}
	c.suspects = nil
}

func (c *collector) flush(ctx context.Context) {
	if len(c.batch) > 0 && !c.failing {
		done, err := c.m.commit(ctx, c.batch)
		if err != nil {
			c.failing = true
			c.stop(failed(err))
		} else {
			done.progress = done.progress || c.committed.progress
			c.committed = done
		}
	}
	c.batch = nil
}

// committed is what commits have come to.
type committed struct {
	any      bool          // there was one
	job      jobs.Progress // of the row after the last
	progress bool          // an item is dealt with
}

// commit records results in one transaction and counts them.
func (s *slice) commit(ctx context.Context, results []jobs.Result) (done committed, err error) {
	defer func() {
		if p := s.recovered(recover()); p != nil {
			err = p
		}
	}()
	job, err := s.opts.Store.Commit(ctx, s.ref, results)
	if err != nil {
		return committed{}, fmt.Errorf("commit %d results of job %s: %w", len(results), s.job.ID, err)
	}
	done = committed{any: true, job: job.Progress}
	for _, r := range results {
		s.metrics.messages.WithLabelValues(string(r.Outcome)).Inc()
		if r.Outcome != jobs.ItemDeferred {
			done.progress = true
		}
		if r.Outcome == jobs.ItemStored {
			s.metrics.bytes.Add(float64(r.Message.Size))
		}
	}
	return done, nil
}

// note takes over what commits have come to.
func (s *slice) note(done committed) {
	if done.any {
		s.job.Progress, s.progress = done.job, s.progress || done.progress
	}
}
