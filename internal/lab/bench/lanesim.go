package bench

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"headroom/internal/lab/traffic"
	"headroom/quota"
	"headroom/quota/price"
)

// laneMode is a way to share a limit between interactive calls and a backfill.
type laneMode struct {
	name     string
	mode     quota.Mode
	backfill bool
}

// withoutBackfill is what the modes are compared with: interactive calls alone.
var withoutBackfill = laneMode{name: "none"}

func laneModes() []laneMode {
	all := []laneMode{withoutBackfill}
	for _, mode := range quota.Modes {
		all = append(all, laneMode{string(mode), mode, true})
	}
	return all
}

// laneTally is what happened in one simulation, or in several.
type laneTally struct {
	units     int64 // of the backfill, admitted
	calls     int64 // interactive
	refused   int64 // of those, at the first attempt
	longest   time.Duration
	decisions int64
}

func (t *laneTally) add(other laneTally) {
	t.units += other.units
	t.calls += other.calls
	t.refused += other.refused
	t.longest = max(t.longest, other.longest)
	t.decisions += other.decisions
}

// laneSim plays one load against a ledger of its own, in virtual time. Whoever is
// refused waits exactly as long as the ledger says, and asks again. A saturating
// backfill is one such caller: workers wait for an account in line, so that only
// the first of them asks.
type laneSim struct {
	ledger  *quota.Ledger
	api     string
	now     time.Duration    // like all moments here, since the load began
	end     time.Duration    // of the load; who waits then is still let in
	coming  []traffic.Demand // in their order
	waiting asks
	planned int // orders asks of one moment
	open    int // interactive calls that are not admitted yet
	tally   laneTally
}

// An ask is a call that is to ask the ledger at a moment.
type ask struct {
	at    time.Duration
	order int
	first time.Duration // when it asked first
	cost  int64
	lane  quota.Lane
}

// asks is a heap: the earliest ask first, and of one moment, the one that was
// planned first.
type asks []ask

func (a asks) Len() int      { return len(a) }
func (a asks) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a asks) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].order < a[j].order
}
func (a *asks) Push(x any) { *a = append(*a, x.(ask)) }
func (a *asks) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// newLaneSim plans a load on keys that begin with prefix.
func newLaneSim(rdb redis.UniversalClient, prefix string, mode laneMode, demands []traffic.Demand, long time.Duration) (*laneSim, error) {
	list, err := listWith(laneLimit, 200*laneLimit)
	if err != nil {
		return nil, err
	}
	s := &laneSim{api: list.API, end: long, coming: demands, open: len(demands)}
	// The decisions of one simulation come one after the other, so there is nothing
	// for its ledger to send together: the client does that, over all simulations.
	s.ledger, err = quota.NewLedger(quota.Options{
		Redis: rdb, KeyPrefix: prefix, Fresh: true, Plain: true,
		Projects: map[string]quota.Project{benchProject: {Mode: mode.mode, Lists: []*price.List{list}}},
	})
	if err != nil {
		return nil, err
	}
	quota.Simulate(s.ledger, func() time.Time { return loadBegins.Add(s.now) })
	if mode.backfill {
		s.plan(ask{lane: quota.Backfill, cost: backfillCost})
	}
	return s, nil
}

func (s *laneSim) plan(a ask) {
	a.order = s.planned
	s.planned++
	heap.Push(&s.waiting, a)
}

// next returns who asks next, if anybody does.
func (s *laneSim) next() (ask, bool) {
	if len(s.coming) > 0 && (len(s.waiting) == 0 || s.coming[0].At <= s.waiting[0].at) {
		d := s.coming[0]
		s.coming = s.coming[1:]
		return ask{at: d.At, first: d.At, cost: d.Cost, lane: quota.Interactive}, true
	}
	if len(s.waiting) == 0 {
		return ask{}, false
	}
	return heap.Pop(&s.waiting).(ask), true
}

// run plays the load to its end, and tells how much of it is done now and then.
func (s *laneSim) run(ctx context.Context, tell func(done time.Duration)) (laneTally, error) {
	const step = time.Minute
	shown := time.Duration(0)
	for {
		a, ok := s.next()
		if !ok || s.open == 0 && a.at >= s.end {
			break // at most the backfill is left, which would go on for ever
		}
		s.now = a.at
		for shown+step <= min(s.now, s.end) {
			shown += step
			tell(step)
		}
		wait, err := s.take(ctx, a)
		if err != nil {
			return s.tally, err
		}
		s.count(a, wait)
	}
	tell(s.end - shown)
	return s.tally, nil
}

// take asks the ledger and returns how long to wait; 0: admitted.
func (s *laneSim) take(ctx context.Context, a ask) (time.Duration, error) {
	s.tally.decisions++
	_, err := s.ledger.Take(ctx, quota.Caller{Project: benchProject, User: ledgerUser(0), Lane: a.lane}, s.api, a.cost)
	denied, ok := errors.AsType[*quota.DeniedError](err)
	switch {
	case !ok:
		return 0, err
	case denied.Limit != price.UserMinute && denied.Bound != quota.BoundPace:
		// The project's pace may hold a backfill up, for a millisecond a call.
		return 0, fmt.Errorf("only the user's limit is to bind: %w", denied)
	case denied.RetryAfter <= 0:
		return 0, fmt.Errorf("refused without a wait: %w", denied)
	}
	return denied.RetryAfter, nil
}

// count notes an answer, and plans what follows from it.
func (s *laneSim) count(a ask, wait time.Duration) {
	if a.lane == quota.Backfill {
		if wait == 0 && a.at < s.end {
			s.tally.units += a.cost
		}
		a.at += wait
		s.plan(a) // after an admission, the next call asks at once
		return
	}
	if a.at == a.first {
		s.tally.calls++
		if wait > 0 {
			s.tally.refused++
		}
	}
	if wait > 0 {
		a.at += wait
		s.plan(a)
		return
	}
	s.open--
	s.tally.longest = max(s.tally.longest, a.at-a.first)
}
