package workers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"headroom/jobs"
)

// fetch deals with the pending items until none is left or something stops the slice.
// Several passes over them may be needed: an item that was deferred comes back behind
// the cursor.
func (m *mailRun) fetch(ctx context.Context) result {
	if m.memo.breaker.streak >= jobs.FaultStreak { // the last slice saw an outage: ask before all go
		if _, r := m.probeKnown(ctx, nil); r.stops() {
			return r
		}
	}
	for {
		if m.stopping() {
			return result{reason: timeUp}
		}
		taken, suspects, r := m.pass(ctx)
		if len(suspects) > 0 && r.reason <= timeUp {
			if decided := m.decide(ctx, suspects); decided.stops() {
				return decided
			}
		}
		switch {
		case r.reason > suspected:
			return r
		case taken > 0:
			continue
		}
		if r := m.awaitDue(ctx); r.stops() {
			return r
		}
	}
}

// awaitDue waits in place for the next deferred item, or returns why the slice is over:
// no item is left, or the wait is too long to be spent in place.
func (m *mailRun) awaitDue(ctx context.Context) result {
	due, err := m.opts.Store.NextDue(ctx, m.ref)
	if err != nil {
		return failed(fmt.Errorf("next item of job %s: %w", m.job.ID, err))
	}
	wait := due.Sub(m.now())
	if due.IsZero() || wait > inPlace {
		if worked, r := m.lister.between(ctx); worked || r.stops() {
			return r
		}
	}
	if due.IsZero() {
		if more, r := m.more(ctx); more || r.stops() {
			return r
		}
		if m.job.Progress.Failed > 0 {
			return endsAs(jobs.CompletedWithFailures, "")
		}
		return endsAs(jobs.Completed, "")
	}
	if wait > inPlace {
		left := m.job.Progress.Listed - m.job.Progress.Done()
		return result{reason: deferred, why: fmt.Sprintf("the retry of %d items", left), until: due}
	}
	// Never nothing: the store may see its clock a little behind ours.
	timer := time.NewTimer(max(wait, 10*time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-m.draining.Done():
	case <-ctx.Done():
		return lostFor(ctx)
	}
	return result{}
}

// more finds more items when none is pending: what is listed in place of messages
// that do not count, or messages whose metadata is stored and whose bodies come next.
func (m *mailRun) more(ctx context.Context) (bool, result) {
	if m.unlisted.stops() {
		return false, m.unlisted
	}
	if m.job.ListsOn() {
		return m.lister.relist(ctx)
	}
	more, err := m.opts.Store.NextPass(ctx, m.ref)
	if err != nil {
		return false, failed(fmt.Errorf("next pass of job %s: %w", m.job.ID, err))
	}
	return more, result{}
}

// A pass is one run of the cursor over the pending items. Its goroutines form a line:
// the feeder reads items from the store ahead of need, the fetchers fetch and store
// them, the collector commits the results. Whoever finds a reason to stop calls stop:
// then nothing more is started, and what is in flight is committed.
type pass struct {
	*stopper
	m        *mailRun
	items    chan []jobs.Item // those that are fetched together
	taken    map[string]bool  // ids handed out, where threads may be; the feeder's
	outcomes chan outcome
	opened   chan struct{} // closed when more than one fetcher may work
	open     func()        // closes opened, once
}

// pass returns how many items were taken, the results of items whose faults have yet
// to be decided on, and why it stopped before the last item, if it did.
func (m *mailRun) pass(ctx context.Context) (taken int, suspects []suspect, r result) {
	p := &pass{
		stopper: newStopper(), m: m,
		// Buffered by as much as is in flight, so that fetchers never wait
		// for the store between two batches.
		items:    make(chan []jobs.Item, m.opts.InFlight),
		taken:    map[string]bool{},
		outcomes: make(chan outcome, m.opts.InFlight),
		opened:   make(chan struct{}),
	}
	p.open = sync.OnceFunc(func() { close(p.opened) })
	if m.job.Refusals == 0 && m.job.Failures == 0 || m.progress || m.evidence(m.memo.breaker, nil).Works() {
		p.open()
	}
	done := make(chan struct{})
	var watcher, fetchers, committing sync.WaitGroup
	watcher.Go(func() { p.watch(ctx, done) })
	for i := range m.opts.InFlight {
		fetchers.Go(func() { p.fetchAll(ctx, i == 0) })
	}
	c := &collector{stopper: p.stopper, m: m, breaker: m.memo.breaker}
	committing.Go(func() { c.run(ctx, p.outcomes) })

	taken = p.feed(ctx)
	close(p.items)
	fetchers.Wait()
	close(p.outcomes)
	committing.Wait()
	close(done)
	watcher.Wait()
	m.memo.breaker = c.breaker
	m.note(c.committed)
	return taken, c.suspects, p.result()
}

// watch stops the pass when its time is up, the process stops, or the lease is lost.
func (p *pass) watch(ctx context.Context, done <-chan struct{}) {
	timer := time.NewTimer(p.m.workUntil.Sub(p.m.now()))
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		p.stop(result{reason: timeUp})
	case <-p.m.draining.Done():
		p.stop(result{reason: timeUp})
	case <-ctx.Done():
		p.stop(lostFor(ctx))
	}
}

// feed hands out pending items in order and returns how many.
func (p *pass) feed(ctx context.Context) (taken int) {
	defer func() {
		if err := p.m.recovered(recover()); err != nil {
			p.stop(failedForGood(err))
		}
	}()
	var after int64
	for !p.stopped() {
		batch, err := p.m.opts.Store.NextItems(ctx, p.m.ref, after, 2*p.m.opts.InFlight)
		if err != nil {
			p.stop(failed(fmt.Errorf("next items of job %s: %w", p.m.job.ID, err)))
			return taken
		}
		if len(batch) == 0 {
			return taken
		}
		for _, item := range batch {
			if p.taken[item.ID] {
				continue
			}
			group := []jobs.Item{item}
			if p.m.threads > 0 {
				if group, err = p.group(ctx, item); err != nil {
					p.stop(failed(err))
					return taken
				}
			}
			select {
			case p.items <- group:
				taken += len(group)
				for _, item := range group {
					p.taken[item.ID] = p.m.threads > 0
				}
			case <-p.done:
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
func (p *pass) fetchAll(ctx context.Context, first bool) {
	if first {
		defer p.open()
	} else {
		select {
		case <-p.opened:
		case <-p.done:
		}
	}
	for group := range p.items {
		p.fetchGroup(ctx, group)
	}
}

// fetchGroup fetches the items of a group, unless the pass was stopped before their
// turn: then they stay pending.
func (p *pass) fetchGroup(ctx context.Context, group []jobs.Item) {
	defer func() {
		if err := p.m.recovered(recover()); err != nil {
			p.stop(failedForGood(fmt.Errorf("message %s of %s: %w", group[0].ID, p.m.job.Account, err)))
		}
	}()
	if len(group) > 1 {
		if !p.stopped() {
			p.fetchThread(ctx, group)
		}
		return
	}
	p.fetchOne(ctx, group[0])
}

// fetchOne fetches one item by itself.
func (p *pass) fetchOne(ctx context.Context, item jobs.Item) {
	if !p.stopped() {
		p.emit(p.m.fetchMessage(ctx, p.done, item))
	}
}

// emit passes on the outcome of an item, if it has one.
func (p *pass) emit(out *outcome, r result) {
	if r.stops() {
		p.stop(r)
	}
	if out != nil {
		if out.fault == nil {
			p.open()
		}
		p.outcomes <- *out
	}
}
