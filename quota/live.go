package quota

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"headroom/quota/price"
)

// Mode names settings of the lanes that go together.
type Mode string

// The modes.
const (
	// ModeDefault leaves the background four fifths of each limit, paced.
	ModeDefault Mode = "default"
	// ModeGuaranteed is a plain lower quota: people are never refused as long as
	// what they ask for in a minute stays under what the background leaves them.
	ModeGuaranteed Mode = "guaranteed"
	// ModeAdaptive lets the background's ceilings follow what people have asked
	// for lately, between a floor and the ceiling. They give way at once.
	ModeAdaptive Mode = "adaptive"
)

// Modes lists all modes.
var Modes = []Mode{ModeDefault, ModeGuaranteed, ModeAdaptive}

// Lanes returns the settings that the mode stands for.
func (m Mode) Lanes() map[Lane]LaneSettings {
	switch m {
	case ModeGuaranteed:
		return map[Lane]LaneSettings{
			Interactive: {Ceiling: 1, InFlight: 10},
			Sync:        {Ceiling: 0.6, InFlight: 8},
			Backfill:    {Ceiling: 0.5, InFlight: 7},
		}
	case ModeAdaptive:
		return map[Lane]LaneSettings{
			Interactive: {Ceiling: 1, InFlight: 10},
			Sync:        {Ceiling: 0.95, Pace: 1.05, InFlight: 8},
			Backfill:    {Ceiling: 0.9, Floor: 0.5, Pace: 1.05, InFlight: 7},
		}
	}
	return map[Lane]LaneSettings{
		Interactive: {Ceiling: 1, InFlight: 10},
		Sync:        {Ceiling: 0.9, Pace: 1.05, InFlight: 8},
		Backfill:    {Ceiling: 0.8, Pace: 1.05, InFlight: 7},
	}
}

// Key names a value of a lane's settings.
type Key string

// The keys of a [Change].
const (
	KeyCeiling  Key = "ceiling"
	KeyFloor    Key = "floor"
	KeyPace     Key = "pace"
	KeyInFlight Key = "in_flight"
)

// Keys lists all keys.
var Keys = []Key{KeyCeiling, KeyFloor, KeyPace, KeyInFlight}

// LimitUserBytes is the limit of what a Google user may download in a day. It is
// a limit of Gmail's only.
const LimitUserBytes = "user-day-bytes"

// A Change is one value of a lane's settings that differs from what holds
// otherwise: for one account or all, for one limit or all. The more closely it
// fits, the more it counts: an account's before all accounts', a limit's before
// all limits'.
type Change struct {
	User  string  `json:"user,omitempty"` // all if empty
	Lane  Lane    `json:"lane"`
	Limit string  `json:"limit,omitempty"` // all if empty; in_flight has none
	Key   Key     `json:"key"`
	Value float64 `json:"value"`
}

// Live are a project's settings for one API as far as they were changed while
// processes run. The zero value changes nothing.
type Live struct {
	// Revision grows with each change: of two, the higher holds.
	Revision uint32   `json:"revision"`
	Mode     Mode     `json:"mode,omitempty"` // the project's if empty
	Changes  []Change `json:"changes,omitempty"`
}

// With returns a copy in which c replaces the change of the same account, lane,
// limit and key. The revision stays.
func (v Live) With(c Change) Live {
	v = v.Without(c)
	v.Changes = append(v.Changes, c)
	return v
}

// Without returns a copy that has no change for the account, lane, limit and key
// of c.
func (v Live) Without(c Change) Live {
	v.Changes = slices.DeleteFunc(slices.Clone(v.Changes), func(old Change) bool { return old.place() == c.place() })
	return v
}

// place is what a change is about.
func (c Change) place() Change {
	c.User, c.Value = lower(c.User), 0
	return c
}

// String is the change as an assignment, for instance "backfill.ceiling=0.7".
func (c Change) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.%s=%g", c.Lane, c.Key, c.Value)
	if c.Limit != "" {
		b.WriteString(" of " + c.Limit)
	}
	if c.User != "" {
		b.WriteString(" for " + c.User)
	}
	return b.String()
}

// Validate reports everything that is wrong with a change for an API whose limits
// are those of list.
func (c Change) Validate(list *price.List) error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if !c.Lane.Valid() {
		bad("unknown lane %q; there are %v", c.Lane, Lanes)
	}
	if c.User != "" {
		if err := checkUser(c.User); err != nil {
			problems = append(problems, err)
		}
	}
	_, known := list.Limits[c.Limit]
	switch {
	case c.Limit == "":
	case c.Key == KeyInFlight:
		bad("in_flight has no limit")
	case c.Limit == LimitUserBytes && list.API == "gmail":
		if c.Key != KeyCeiling {
			bad("%s has a ceiling only", LimitUserBytes)
		}
	case !known:
		bad("price list %s has no limit %q", list.Name, c.Limit)
	}
	switch c.Key {
	case KeyCeiling:
		if !(c.Value > 0 && c.Value <= 1) {
			bad("ceiling %v is not above 0 and up to 1", c.Value)
		}
	case KeyFloor:
		if c.Lane != Backfill {
			bad("only lane backfill has a floor")
		}
		if !(c.Value >= 0 && c.Value <= 1) {
			bad("floor %v is not from 0 to 1", c.Value)
		}
	case KeyPace:
		if c.Lane == Interactive {
			bad("lane interactive has no pace")
		}
		if !(c.Value >= 0 && c.Value <= 60) {
			bad("pace %v is not from 0 to 60", c.Value)
		}
	case KeyInFlight:
		if !(c.Value >= 1 && c.Value <= 1000 && c.Value == float64(int(c.Value))) {
			bad("in_flight %v is not a number from 1 to 1000", c.Value)
		}
	default:
		bad("unknown setting %q; there are %v", c.Key, Keys)
	}
	return errors.Join(problems...)
}

// settings returns what holds for a lane, limit and user. Interactive calls have
// all of a day's bytes unless somebody says otherwise.
func (p Project) settings(v Live, lane Lane, limit, user string) LaneSettings {
	mode := p.Mode
	if v.Mode != "" {
		mode = v.Mode
	}
	s := mode.Lanes()[lane]
	if own, ok := p.Lanes[lane]; ok {
		inFlight := s.InFlight
		s = own
		if s.InFlight == 0 {
			s.InFlight = inFlight
		}
	}
	for _, changes := range [][]Change{p.Changes, v.Changes} {
		for _, c := range fitting(changes, lane, limit, user) {
			switch c.Key {
			case KeyCeiling:
				s.Ceiling = c.Value
			case KeyFloor:
				s.Floor = c.Value
			case KeyPace:
				s.Pace = c.Value
			case KeyInFlight:
				s.InFlight = int(c.Value)
			}
		}
	}
	return s
}

// fitting are the changes that concern a lane, limit and user, in the order in
// which they count: the last one holds.
func fitting(changes []Change, lane Lane, limit, user string) []Change {
	var fit []Change
	for closeness := range 4 {
		for _, c := range changes {
			place := c.place()
			own := 0
			if place.Limit != "" {
				own++
			}
			if place.User != "" {
				own += 2
			}
			if own == closeness && place.Lane == lane && (place.Limit == "" || place.Limit == limit) && (place.User == "" || place.User == lower(user)) {
				fit = append(fit, c)
			}
		}
	}
	return fit
}
