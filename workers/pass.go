package workers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"headroom/jobs"
)

// pass is one run of the cursor over the pending items. Its goroutines form a
// line: the feeder reads items from the store ahead of need, the fetchers fetch
// and store them, the collector commits the results. Whoever finds a reason to
// stop calls halt: then nothing more is started, and what is in flight is
// committed.
type pass struct {
	*slice
	items    chan []jobs.Item // those that are fetched together
	taken    map[string]bool  // ids handed out, where threads may be; the feeder's
	outcomes chan outcome
	halted   chan struct{} // closed by the first halt
	opened   chan struct{} // closed when more than one fetcher may work
	open     func()        // closes opened, once

	mu  sync.Mutex
	end *ending // the best reason to stop; nil: none yet
}

// outcome is what became of a fetched item.
type outcome struct {
	item   jobs.Item
	result jobs.Result
	fault  error // Google's, or the item's: not known yet; nil: none
}

// pass returns how many items were taken, the results of items whose faults
// have yet to be judged, and why it stopped before the last item, if it did.
func (s *slice) pass(ctx, calls context.Context) (taken int, suspects []suspect, end *ending) {
	p := &pass{
		slice: s,
		// Buffered by as much as is in flight, so that fetchers never wait
		// for the store between two batches.
		items:    make(chan []jobs.Item, s.opts.InFlight),
		taken:    map[string]bool{},
		outcomes: make(chan outcome, s.opts.InFlight),
		halted:   make(chan struct{}),
		opened:   make(chan struct{}),
	}
	p.open = sync.OnceFunc(func() { close(p.opened) })
	if s.job.Refusals == 0 && s.job.Failures == 0 || s.progress || s.evidence(nil).Works() {
		p.open()
	}
	done := make(chan struct{})
	var watcher, fetchers, committing sync.WaitGroup
	watcher.Go(func() { p.watch(ctx, done) })
	for i := range s.opts.InFlight {
		fetchers.Go(func() { p.fetchAll(ctx, calls, i == 0) })
	}
	c := &collector{slice: s, halt: p.halt}
	committing.Go(func() { c.run(ctx, p.outcomes) })

	taken = p.feed(ctx)
	close(p.items)
	fetchers.Wait()
	close(p.outcomes)
	committing.Wait()
	close(done)
	watcher.Wait()
	return taken, c.suspects, p.end
}

// halt stops the pass for a reason.
func (p *pass) halt(e ending) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.end == nil:
		p.end = &e
		close(p.halted)
	case e.outranks(*p.end):
		p.end = &e
	}
}

func (p *pass) isHalted() bool {
	select {
	case <-p.halted:
		return true
	default:
		return false
	}
}

// watch halts the pass when its time is over, the process stops, or the lease
// is lost.
func (p *pass) watch(ctx context.Context, done <-chan struct{}) {
	timer := time.NewTimer(time.Until(p.over))
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		p.halt(ending{how: goesOn})
	case <-p.drain:
		p.halt(ending{how: goesOn})
	case <-ctx.Done():
		p.halt(ending{how: lost, err: context.Cause(ctx)})
	}
}

// feed hands out pending items in order and returns how many.
func (p *pass) feed(ctx context.Context) (taken int) {
	defer func() {
		if err := p.recovered(recover()); err != nil {
			p.halt(*persists(err))
		}
	}()
	var after int64
	for !p.isHalted() {
		batch, err := p.opts.Store.NextItems(ctx, p.ref, after, 2*p.opts.InFlight)
		if err != nil {
			p.halt(*breaks(fmt.Errorf("next items of job %s: %w", p.job.ID, err)))
			return taken
		}
		if len(batch) == 0 {
			return taken
		}
		for _, item := range batch {
			if p.taken[item.ID] {
				continue
			}
			group, err := p.group(ctx, item)
			if err != nil {
				p.halt(*breaks(err))
				return taken
			}
			select {
			case p.items <- group:
				taken += len(group)
				for _, item := range group {
					p.taken[item.ID] = p.threads > 0
				}
			case <-p.halted:
				return taken
			}
		}
		after = batch[len(batch)-1].Seq
	}
	return taken
}

// fetchAll fetches items until there are no more. After a refusal or a fault, the
// first fetcher tries alone whether the quota, or Google, is back: if it is not, one
// call has been made and not as many as there are fetchers.
func (p *pass) fetchAll(ctx, calls context.Context, first bool) {
	if first {
		defer p.open()
	} else {
		select {
		case <-p.opened:
		case <-p.halted:
		}
	}
	for group := range p.items {
		p.handleGroup(ctx, calls, group)
	}
}

// handleGroup fetches the items of a group, unless the pass was halted before their
// turn: then they stay pending.
func (p *pass) handleGroup(ctx, calls context.Context, group []jobs.Item) {
	defer func() {
		if err := p.recovered(recover()); err != nil {
			p.halt(*persists(fmt.Errorf("message %s of %s: %w", group[0].ID, p.job.Account, err)))
		}
	}()
	if p.isHalted() {
		return
	}
	if len(group) > 1 {
		p.handleThread(ctx, calls, group)
		return
	}
	p.handle(ctx, calls, group[0])
}

// handle fetches one item by itself.
func (p *pass) handle(ctx, calls context.Context, item jobs.Item) {
	if !p.isHalted() {
		p.emit(p.fetchItem(ctx, calls, p.halted, item))
	}
}

// emit passes on what became of an item.
func (p *pass) emit(out *outcome, end *ending) {
	if end != nil {
		p.halt(*end)
	}
	if out != nil {
		if out.fault == nil {
			p.open()
		}
		p.outcomes <- *out
	}
}
