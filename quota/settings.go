package quota

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// maxUnits bounds limits and costs: the ledger counts in 32 bits, and Lua must
// stay exact.
const maxUnits = 1<<31 - 1

// The shape of the windows, in quota time.
const (
	// bucketWidth is how finely the ledger remembers when units were spent.
	bucketWidth = time.Second
	// guard is how much longer than Google's window a unit counts. Google counts
	// arrivals, not admissions: a call that was on its way for as long as the
	// guard still meets a window that has room for it.
	guard = time.Second
)

// LaneSettings say how far up a limit a lane may fill it, and how fast.
type LaneSettings struct {
	Ceiling float64 // share of each limit, above 0 and up to 1
	Pace    float64 // units per second as a multiple of ceiling/60 s; 0: as fast as it likes
}

// DefaultLanes are the settings of lanes that a project leaves unset. Interactive
// traffic may use all of a limit; the background leaves a fifth of it free, and
// spends evenly, so that what it used comes back evenly.
var DefaultLanes = map[Lane]LaneSettings{
	Interactive: {Ceiling: 1},
	Sync:        {Ceiling: 0.9, Pace: 1.05},
	Backfill:    {Ceiling: 0.8, Pace: 1.05},
}

// Project is what the ledger knows of a Google Cloud project.
type Project struct {
	Lists []*PriceList          // one per API
	Lanes map[Lane]LaneSettings // [DefaultLanes] where unset
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
		if !(s.Pace >= 0 && s.Pace <= 60) {
			problems = append(problems, fmt.Errorf("lane %s: pace %v is not from 0 to 60", lane, s.Pace))
		}
	}
	return errors.Join(problems...)
}

// window is one limit as the script sees it for one lane.
type window struct {
	limit    string
	units    int64 // Google's limit
	ceiling  int64
	interval int64 // time that the lane pays for a unit, in 1/256 us; 0: no pace
}

// plan is all that a decision for one lane of one project and API needs, made
// once: the keys' shape and the fixed part of the script's request.
type plan struct {
	windows []window // in the order of the script's: the user's, then the project's
	scopes  []string // whose windows stand in which key: the user's, the project's
	width   int64    // of a bucket, in us
	spec    []byte
	hashTag string // "{api:project}"
	shape   string // names the layout of the keys; another layout is another key
}

// layoutVersion names the layout of the strings that take.lua keeps.
const layoutVersion = 1

// makePlan lays out the windows of one lane. Quota time runs scale times faster
// than the clock.
func makePlan(list *PriceList, project string, lane Lane, s LaneSettings, scale int) (*plan, error) {
	p := &plan{hashTag: "{" + list.API + ":" + project + "}"}
	scaled := func(d time.Duration) int64 { return d.Microseconds() / int64(scale) }
	width := scaled(bucketWidth)
	var shape string
	for _, scope := range []string{"user", "project"} {
		var spec []byte
		var windows byte
		var longest int64
		for _, name := range slices.Sorted(maps.Keys(list.Limits)) {
			limit := list.Limits[name]
			if limit.Per != scope {
				continue
			}
			period := scaled(limit.Period)
			n := int64((limit.Period + guard) / bucketWidth)
			w := window{limit: name, units: limit.Units, ceiling: int64(float64(limit.Units) * s.Ceiling)}
			if w.ceiling < 1 {
				return nil, fmt.Errorf("lane %s of %s: ceiling %v of %d units leaves none", lane, name, s.Ceiling, limit.Units)
			}
			if s.Pace > 0 {
				interval := 256 * float64(period) / (s.Pace * float64(w.ceiling))
				if interval >= 1<<32 {
					return nil, fmt.Errorf("lane %s of %s: pace %v of %d units is too slow", lane, name, s.Pace, w.ceiling)
				}
				w.interval = max(1, int64(interval))
			}
			p.windows = append(p.windows, w)
			spec = binary.LittleEndian.AppendUint32(spec, uint32(w.ceiling))
			spec = binary.LittleEndian.AppendUint32(spec, uint32(w.interval))
			spec = append(spec, byte(n))
			shape += fmt.Sprintf(".%s-%d", name, n)
			longest = max(longest, (n+1)*width)
			windows++
		}
		if windows == 0 {
			continue
		}
		// The key outlives its windows, however the clocks of expiry and ledger round.
		ttl := 2*longest/1e6 + 2
		p.scopes = append(p.scopes, scope)
		p.spec = append(p.spec, windows)
		p.spec = binary.LittleEndian.AppendUint32(p.spec, uint32(ttl))
		p.spec = append(p.spec, spec...)
	}
	p.shape = fmt.Sprintf("v%d.%dus%s", layoutVersion, width, shape)
	p.width = width
	return p, nil
}

// keys names the strings of a user and of the project, in the order of the
// plan's windows. The project is the hash tag: Google's limit of a whole project
// is a few percent of what one Redis shard can count, and one script may only
// touch one slot.
func (p *plan) keys(prefix, user string) []string {
	base := prefix + p.hashTag + ":" + p.shape
	keys := make([]string, len(p.scopes))
	for i, scope := range p.scopes {
		keys[i] = base + ":" + scope
		if scope == "user" {
			keys[i] += ":" + user
		}
	}
	return keys
}

// request packs the script's first argument.
func (p *plan) request(cost, want int64, lane Lane) []byte {
	b := make([]byte, 0, 13+len(p.spec))
	b = binary.LittleEndian.AppendUint32(b, uint32(cost))
	b = binary.LittleEndian.AppendUint32(b, uint32(want))
	b = binary.LittleEndian.AppendUint32(b, uint32(p.width))
	b = append(b, laneIndex(lane))
	return append(b, p.spec...)
}

func laneIndex(lane Lane) byte {
	for i, l := range Lanes {
		if l == lane {
			return byte(i)
		}
	}
	return 0
}
