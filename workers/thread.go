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
	if p.threads == 0 || item.Thread == "" || item.Noted || item.Attempts > 0 || p.oversize(item.Size) {
		return alone, nil
	}
	all, err := p.opts.Store.ThreadItems(ctx, p.ref, item.Thread, maxThread)
	if err != nil {
		return nil, err
	}
	var group []jobs.Item
	for _, other := range all {
		// Of one that is too large nothing is asked for; one that was handed out
		// is under way.
		if other.ID == item.ID || !p.oversize(other.Size) && !p.taken[other.ID] {
			group = append(group, other)
		}
	}
	if len(group) < p.threads {
		return alone, nil
	}
	return group, nil
}

// handleThread fetches the items of one thread. Those that the thread turns out not
// to have, or all if it cannot be had, are fetched by themselves.
func (p *pass) handleThread(ctx, calls context.Context, group []jobs.Item) {
	found, end := p.fetchThread(ctx, calls, p.halted, group[0].Thread)
	if end != nil {
		p.halt(*end)
		return
	}
	for _, item := range group {
		f, ok := found[item.ID]
		if !ok {
			p.handle(ctx, calls, item)
		} else if len(f.Attachments) == 0 || !p.isHalted() {
			p.emit(p.keep(ctx, calls, item, f))
		}
	}
}

// fetchThread gets a thread. It returns nothing when that cannot be had, or when the
// call was not made.
func (s *slice) fetchThread(ctx, calls context.Context, quit <-chan struct{}, thread string) (map[string]jobs.Fetched, *ending) {
	s.metrics.inFlight.Inc()
	defer s.metrics.inFlight.Dec()
	var all []jobs.Fetched
	err := s.call(calls, quit, func(ctx context.Context) (err error) {
		all, err = s.box.Thread(ctx, thread, s.job.Filter.Format)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return nil, &ending{how: lost, err: context.Cause(ctx)}
	case errors.Is(err, errNoTurn), err != nil && interrupted(calls):
		return nil, nil
	case err != nil:
		return nil, s.endingOfItem(ctx, calls, err)
	}
	found := map[string]jobs.Fetched{}
	for _, f := range all {
		found[f.ID] = f
	}
	return found, nil
}

// keep is what becomes of an item that came with its thread.
func (s *slice) keep(ctx, calls context.Context, item jobs.Item, f jobs.Fetched) (*outcome, *ending) {
	var g fetched
	var err error
	if s.job.Filter.Format == jobs.FormatFull {
		g, err = s.keepFull(ctx, calls, f)
	} else {
		g, err = s.noted(f, 0)
	}
	return s.becomes(ctx, calls, item, g, err)
}
