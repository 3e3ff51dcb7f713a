package quota

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"headroom/quota/price"
)

// The shape of the windows, in quota time.
const (
	// bucketWidth is how finely the ledger remembers when units were spent.
	bucketWidth = time.Second
	// guard is how much longer than Google's window a unit counts. Google counts
	// arrivals, not admissions: a call that was on its way for as long as the
	// guard still meets a window that has room for it.
	guard = time.Second
)

// buckets are how finely and for how much longer than Google a ledger remembers.
type buckets struct{ width, guard time.Duration }

// LaneSettings say how far up a limit a lane may fill it, and how fast.
type LaneSettings struct {
	Ceiling float64 // share of each limit, above 0 and up to 1
	// Pace bounds how fast the lane spends, as a multiple of ceiling/60 per second;
	// 0: as fast as it likes. What other lanes spend counts too, as it does for the
	// ceiling, so that the background slows down while people are busy. Lane
	// interactive has none.
	Pace float64
	// Floor is how far the ceiling of lane backfill gives way to what people ask
	// for, as a share of each limit; those of the other background lanes shrink in
	// proportion. 0: it does not. See [ModeAdaptive].
	Floor float64
	// InFlight is how many calls of one Google user may be in flight before a call
	// of this lane must wait, over all lanes and processes; the mode's if zero.
	InFlight int
}

// Project is what the ledger knows of a Google Cloud project.
type Project struct {
	Lists   []*price.List         // one per API
	Mode    Mode                  // [ModeDefault] if empty
	Lanes   map[Lane]LaneSettings // the mode's where unset
	Changes []Change              // to the lanes, for all APIs
	Budgets []price.Budget        // at most one per API
}

func (p Project) validate() error {
	var problems []error
	if len(p.Lists) == 0 {
		problems = append(problems, errors.New("no price list"))
	}
	seen := map[string]string{}
	for _, list := range p.Lists {
		if other, ok := seen[list.API]; ok {
			problems = append(problems, fmt.Errorf("two price lists for %s: %s and %s", list.API, other, list.Name))
		}
		seen[list.API] = list.Name
	}
	for lane, s := range p.Lanes {
		if !lane.Valid() {
			problems = append(problems, fmt.Errorf("unknown lane %q", lane))
		}
		if !(s.Ceiling > 0 && s.Ceiling <= 1) {
			problems = append(problems, fmt.Errorf("lane %s: ceiling %v is not above 0 and up to 1", lane, s.Ceiling))
		}
		if lane == Interactive && s.Pace != 0 {
			problems = append(problems, errors.New("lane interactive has no pace"))
		}
		if !(s.Pace >= 0 && s.Pace <= 60) {
			problems = append(problems, fmt.Errorf("lane %s: pace %v is not from 0 to 60", lane, s.Pace))
		}
		if !(s.Floor >= 0 && s.Floor <= 1) || lane != Backfill && s.Floor != 0 {
			problems = append(problems, fmt.Errorf("lane %s: floor %v: only lane backfill has one, from 0 to 1", lane, s.Floor))
		}
	}
	if p.Mode != "" && !slices.Contains(Modes, p.Mode) {
		problems = append(problems, fmt.Errorf("unknown mode %q; there are %v", p.Mode, Modes))
	}
	for _, c := range p.Changes {
		for _, list := range p.Lists {
			if err := c.Validate(list); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", c, err))
			}
		}
	}
	for _, b := range p.Budgets {
		if _, ok := seen[b.API]; !ok {
			problems = append(problems, fmt.Errorf("a budget for %q, but no price list", b.API))
		}
		if err := b.Validate(); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// A window is one limit as the scripts see it for one lane.
type window struct {
	limit    string
	units    int64 // Google's limit
	ceiling  int64
	reserve  int64 // the ceiling while nobody knows what was spent
	sync     int64 // time that lane sync pays for a unit, whoever spends it, in 1/256 us; 0: no pace
	backfill int64 // the same for lane backfill
	buckets  int64 // a unit counts in its own bucket and in so many more
	least    int64 // what lane backfill may fill at least when lending
	most     int64 // and at most
}

// A scope is the windows that stand in one key: those of the project, or those
// of a user.
type scope struct {
	windows []window
	ttl     int64 // life of the key, in seconds; 0: for ever
	day     int64 // bytes of the key's day
}

// size is how many bytes the value of the scope's key has.
func (s scope) size() int64 {
	size := int64(offsets["PREAMBLE.SIZE"]) + s.day
	for _, w := range s.windows {
		size += int64(offsets["HEADER.SIZE"]) + 4*(w.buckets+1)
	}
	return size
}

// userDayBytes is what a Gmail user may download in a day: the limit of IMAP,
// which the API's is said to equal (Google Workspace's page on Gmail bandwidth
// limits, 2026-11-29).
const userDayBytes = 2_500_000_000

// A plan is all that a decision for one lane of one project and API needs, made
// once: the keys' names, and the part of the request that stays.
type plan struct {
	lane    Lane
	project scope
	user    scope
	windows []window // of the project, then of the user
	width   int64    // of a bucket, in us
	buckets buckets
	fresh   *atomic.Bool // of the project: see [Options.Fresh]
	spec    []byte
	budget  int64    // units that the lane may bring the project's day to
	day     *dayPlan // of the project's budget; nil: it has none
	paced   bool     // the budget is spread over the day for the lane
	most    int64    // the largest cost that can ever fit
	bytes   int64    // of a user's day, up to which the lane may go on; 0: no limit
	lending bool     // the background's ceilings follow what people ask for

	inFlight int64 // how many calls of a user may be in flight for one more of the lane
	learned  int64 // as many, if learned, would bind no lane
	hour     int64 // of quota time, in us

	revision uint32 // of the live settings that the plan was made by
	base     string // of all keys: prefix and hash tag
	shape    string // names the layout of the keys; another layout is another key
}

// settingsFunc says what holds for a lane and a limit.
type settingsFunc func(lane Lane, limit string) LaneSettings

// layoutVersion names the layout of the strings that layout.go describes.
const layoutVersion = 2

// makePlan lays out the windows of one lane, for a user with settings of its own
// or for all others.
func (l *Ledger) makePlan(b *book, live Live, user string, lane Lane) (*plan, error) {
	list, name, project := b.list, b.name, b.project
	set := func(lane Lane, limit string) LaneSettings { return project.settings(live, lane, limit, user) }
	p := &plan{
		lane: lane, fresh: &b.fresh, revision: live.Revision, most: price.MaxUnits, width: l.buckets.width.Microseconds() / int64(l.scale), buckets: l.buckets,
		// The project is the hash tag: its own limit is a few percent of what one
		// shard of a cluster can count, and one script may only touch one slot.
		base: l.prefix + "{" + list.API + ":" + name + "}:",
	}
	for _, limitName := range slices.Sorted(maps.Keys(list.Limits)) {
		limit := list.Limits[limitName]
		w, err := p.makeWindow(limitName, limit, set, lane)
		if err != nil {
			return nil, err
		}
		p.lending = p.lending || w.least < w.most
		if limit.Per == "user" {
			p.user.windows = append(p.user.windows, w)
		} else {
			p.project.windows = append(p.project.windows, w)
		}
	}
	p.inFlight, p.hour = int64(set(lane, "").InFlight), l.hour()
	// The background leaves one of those learned.
	p.learned = int64(max(set(Interactive, "").InFlight, set(Sync, "").InFlight+1, set(Backfill, "").InFlight+1))
	if list.API == "gmail" {
		p.bytes = max(1, int64(set(lane, LimitUserBytes).Ceiling*userDayBytes)) // 0 stands for no limit
	}
	p.project.day = int64(offsets["DAY.SIZE"])
	p.budget = maxBudget
	if budget := project.budget(list.API); budget != nil {
		p.day = &dayPlan{Budget: *budget, told: &b.told, log: l.log.With(zap.String("project", name), zap.String("api", list.API))}
		if budget.Pauses() && (lane != Interactive || budget.Hard) {
			p.budget = budget.Units
			p.most = min(p.most, budget.Units)
			p.paced = lane == Backfill && budget.Paced()
		}
	}
	var longest int64
	layout := fnv.New32a()
	fmt.Fprintf(layout, "buckets of %d us", p.width)
	for _, w := range append(slices.Clone(p.project.windows), p.user.windows...) {
		p.windows = append(p.windows, w)
		p.most = min(p.most, w.ceiling)
		fmt.Fprintf(layout, ", %s: %d of them", w.limit, w.buckets)
		longest = max(longest, (w.buckets+1)*p.width)
	}
	p.shape = fmt.Sprintf("v%d-%08x", layoutVersion, layout.Sum32()) // short: Redis handles it with every call
	// A user's key outlives its windows, however the clocks of expiry and ledger
	// round, and what was learned from a refusal: a share grows from nothing to all
	// in 120 buckets, once somebody comes to try.
	p.user.ttl = max(2*longest, longest+200*p.width)/1e6 + 2
	for _, s := range []scope{p.project, p.user} {
		p.spec = pack(p.spec, "SCOPE", int64(len(s.windows)), s.ttl)
		for _, w := range s.windows {
			p.spec = pack(p.spec, "WINDOW", w.ceiling, w.sync, w.backfill, w.buckets, w.reserve, w.units, w.least, w.most)
		}
	}
	return p, nil
}

func (p *plan) makeWindow(name string, limit price.Limit, set settingsFunc, lane Lane) (window, error) {
	s := set(lane, name)
	w := window{limit: name, units: limit.Units, ceiling: int64(float64(limit.Units) * s.Ceiling),
		buckets: int64((limit.Period + p.buckets.guard) / p.buckets.width)}
	if w.ceiling < 1 {
		return w, fmt.Errorf("lane %s of %s: ceiling %v of %d units leaves none", lane, name, s.Ceiling, limit.Units)
	}
	backfill := set(Backfill, name)
	w.most = int64(float64(limit.Units) * backfill.Ceiling)
	w.least = w.most
	if backfill.Floor > 0 {
		w.least = max(1, min(w.most, int64(float64(limit.Units)*backfill.Floor)))
	}
	if lane == Interactive {
		// What the background may have spent before the windows were lost.
		background := max(set(Sync, name).Ceiling, backfill.Ceiling)
		w.reserve = min(w.ceiling, limit.Units-int64(math.Ceil(float64(limit.Units)*background)))
	}
	var err error
	if w.sync, err = p.interval(name, limit, set, Sync); err == nil {
		w.backfill, err = p.interval(name, limit, set, Backfill)
	}
	return w, err
}

// interval is the time that a lane's pace takes to pay for a unit of a limit, in
// 1/256 us; 0 if it has no pace.
func (p *plan) interval(name string, limit price.Limit, set settingsFunc, lane Lane) (int64, error) {
	s := set(lane, name)
	if s.Pace == 0 {
		return 0, nil
	}
	// Quota time runs scale times faster than the clock, and so does width.
	period := float64(limit.Period) / float64(p.buckets.width) * float64(p.width)
	interval := 256 * period / (s.Pace * float64(int64(float64(limit.Units)*s.Ceiling)))
	if interval >= 1<<32 {
		return 0, fmt.Errorf("lane %s of %s: pace %v of ceiling %v of %d units is too slow", lane, name, s.Pace, s.Ceiling, limit.Units)
	}
	return max(1, int64(interval)), nil
}

// keys names the strings that the scripts touch, in the order that they expect.
// Limits and lanes are not part of the names: processes in which they differ
// count together. Addresses that differ in the case of A to Z are one user.
func (p *plan) keys(user string) []string {
	user = lower(user)
	return []string{
		p.base + p.shape + ":project", p.base + p.shape + ":user:" + user, p.base + "shapes", p.base + "settings",
		p.base + "hold", p.base + "hold:" + user,
	}
}

// lower folds A to Z. The lower case of other letters may be another user: that
// of the Kelvin sign is k.
func lower(user string) string {
	if !strings.ContainsFunc(user, func(r rune) bool { return 'A' <= r && r <= 'Z' }) {
		return user
	}
	folded := []byte(user)
	for i, c := range folded {
		if 'A' <= c && c <= 'Z' {
			folded[i] = c + ('a' - 'A')
		}
	}
	return string(folded)
}

// acquireKeys are the keys of acquire.lua.
func (p *plan) acquireKeys(user string) []string {
	return append(p.keys(user)[:2:2], p.slotKeys(user)...)
}

// request packs the first argument of acquire.lua.
func (p *plan) request(q question, now time.Time) []byte {
	flag := func(set bool) int64 {
		if set {
			return 1
		}
		return 0
	}
	ends := dayEnds(now)
	b := make([]byte, 0, offsets["REQUEST.SIZE"]+len(p.spec))
	b = pack(b, "REQUEST", q.cost, p.budgetFor(q.cost, now), p.width, p.inFlight, p.bytes, p.hour, p.learned,
		int64(slices.Index(Lanes, p.lane)), flag(p.lending), flag(p.fresh.Load()), flag(q.spent), int64(p.revision), ends[0], ends[1], ends[2])
	return append(b, p.spec...)
}
