package workers

import (
	"context"
	"errors"

	"headroom/jobs"
	"headroom/quota/price"
)

// The methods of which one gets a message and one a whole thread.
const (
	MethodMessage = "gmail.users.messages.get"
	MethodThread  = "gmail.users.threads.get"
)

// GetFormat is the parameter format of the calls that serve a job's format before
// any raw body comes.
func GetFormat(f jobs.Format) string {
	if f == jobs.FormatFull {
		return "full"
	}
	return "metadata"
}

// ThreadsFrom returns how many messages of a thread a job of this format must want
// for the thread to cost less than the messages by themselves; 0: it never does. A
// price that was not seen on Google's own page counts for half as much again, so
// that the choice holds even if it is that wrong.
func ThreadsFrom(list *price.List, f jobs.Format) int {
	if list == nil || !(jobs.Filter{Format: f}).ByThread() {
		return 0
	}
	one, known := list.Cost(MethodMessage, GetFormat(f))
	all, knownToo := list.Cost(MethodThread, GetFormat(f))
	if !known || !knownToo {
		return 0
	}
	if list.Costs[MethodThread].Verified {
		return int(all/one) + 1
	}
	return max(2, int((3*all+2*one-1)/(2*one)))
}

// maxThread bounds the messages of a thread that are taken at once.
const maxThread = 500

// group is the items that are fetched together with one: those of its thread, if
// that costs less.
func (p *pass) group(ctx context.Context, item jobs.Item) ([]jobs.Item, error) {
	alone := []jobs.Item{item}
	if item.Thread == "" || item.Noted || item.Attempts > 0 || p.m.oversize(item.Size) {
		return alone, nil
	}
	all, err := p.m.opts.Store.ThreadItems(ctx, p.m.ref, item.Thread, maxThread)
	if err != nil {
		return nil, err
	}
	var group []jobs.Item
	for _, other := range all {
		// A message that is too large is not asked for, and one that was handed out
		// is under way.
		if other.ID == item.ID || !p.m.oversize(other.Size) && !p.taken[other.ID] {
			group = append(group, other)
		}
	}
	if len(group) < p.m.threads {
		return alone, nil
	}
	return group, nil
}

// fetchThread fetches the items of one thread. Items that the thread turns out not to
// have, or all if it cannot be fetched, are fetched by themselves.
func (p *pass) fetchThread(ctx context.Context, group []jobs.Item) {
	messages, r := p.m.thread(ctx, p.done, group[0].Thread)
	if r.stops() {
		p.stop(r)
		return
	}
	for _, item := range group {
		f, ok := messages[item.ID]
		if !ok {
			p.fetchOne(ctx, item)
		} else if len(f.Attachments) == 0 || !p.stopped() {
			p.emit(p.m.storeFetched(ctx, item, f))
		}
	}
}

// thread fetches a thread. It returns no messages when that cannot be done, or when
// the call was not made.
func (m *mailRun) thread(ctx context.Context, quit <-chan struct{}, id string) (map[string]jobs.Fetched, result) {
	m.metrics.inFlight.Inc()
	defer m.metrics.inFlight.Dec()
	all, err := get(m.slice, quit, func(ctx context.Context) ([]jobs.Fetched, error) {
		return m.box.Thread(ctx, id, m.job.Filter.Format)
	})
	switch {
	case ctx.Err() != nil:
		return nil, lostFor(ctx)
	case errors.Is(err, errNoTurn), err != nil && m.calls.interrupted():
		return nil, result{}
	case err != nil:
		return nil, m.access.resultOf(ctx, m.slice, err)
	}
	messages := map[string]jobs.Fetched{}
	for _, f := range all {
		messages[f.ID] = f
	}
	return messages, result{}
}

// storeFetched stores an item that came with its thread, and returns its outcome.
func (m *mailRun) storeFetched(ctx context.Context, item jobs.Item, f jobs.Fetched) (*outcome, result) {
	var got fetched
	var err error
	if m.job.Filter.Format == jobs.FormatFull {
		got, err = m.storeFull(ctx, f)
	} else {
		got, err = m.metadataOf(f, 0)
	}
	return m.outcomeOf(ctx, item, got, err)
}
