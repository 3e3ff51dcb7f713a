package control

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"headroom/quota"
)

// keyMode is the key of a [QuotaEdit] that sets the mode.
const keyMode = "mode"

// A QuotaEdit sets, or unsets, one of the quota's settings.
type QuotaEdit struct {
	Unset bool

	Mode quota.Mode // set, or keyMode alone
	Lane quota.Lane // "": the edit is about the mode
	Key  quota.Key
	To   float64
}

// name is the edit's key as in KEY=VALUE.
func (e QuotaEdit) name() string {
	if e.Lane == "" {
		return keyMode
	}
	return string(e.Lane) + "." + string(e.Key)
}

// ParseQuotaEdit reads KEY=VALUE or, to unset, KEY. The price list decides
// later whether the value is allowed.
func ParseQuotaEdit(text string, unset bool) (QuotaEdit, error) {
	name, value, assigned := strings.Cut(text, "=")
	if assigned == unset {
		if unset {
			return QuotaEdit{}, fmt.Errorf("to unset %s, leave out its value", name)
		}
		return QuotaEdit{}, fmt.Errorf("%q is not of the form KEY=VALUE, such as backfill.ceiling=0.7", text)
	}
	e := QuotaEdit{Unset: unset}
	if name == keyMode {
		if e.Mode = quota.Mode(value); !unset && !slices.Contains(quota.Modes, e.Mode) {
			return QuotaEdit{}, fmt.Errorf("unknown mode %q; there are %s", value, words(quota.Modes))
		}
		return e, nil
	}
	lane, key, _ := strings.Cut(name, ".")
	e.Lane, e.Key = quota.Lane(lane), quota.Key(key)
	if !e.Lane.Valid() || !slices.Contains(quota.Keys, e.Key) {
		return QuotaEdit{}, fmt.Errorf("unknown key %q; there are mode, and for the lanes %s LANE.%s",
			name, words(quota.Lanes), strings.Join(strings.Split(words(quota.Keys), ", "), ", LANE."))
	}
	if unset {
		return e, nil
	}
	var err error
	if e.To, err = strconv.ParseFloat(value, 64); err != nil {
		return QuotaEdit{}, fmt.Errorf("%s: %q is not a number such as 0.7", name, value)
	}
	e.To += 0 // what was -0 is 0
	return e, nil
}

func words[T ~string](names []T) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = string(name)
	}
	return strings.Join(texts, ", ")
}

// A QuotaValue is what an edit does to one setting: what held for its place
// before, and what holds after. Mode has names, the others numbers.
type QuotaValue struct {
	Key string `json:"key"`
	Old any    `json:"old"`
	New any    `json:"new"`
}

// apply makes an edit to live settings. Text describes the change; "" if nothing
// changed.
func (e QuotaEdit) apply(l *quota.Ledger, api string, s QuotaScope, live quota.Live) (_ quota.Live, v QuotaValue, text string, err error) {
	before := live
	place := quota.Change{User: s.Account, Lane: e.Lane, Limit: s.Limit, Key: e.Key, Value: e.To}
	switch {
	case e.Lane == "": // the empty mode unsets
		live.Mode = e.Mode
	case e.Unset:
		live = live.Without(place)
	default:
		live = live.With(place)
	}
	if v.Old, err = e.value(l, api, s, before); err != nil {
		return live, v, "", err
	}
	if v.New, err = e.value(l, api, s, live); err != nil {
		return live, v, "", err
	}
	v.Key = e.name()
	if before.Mode == live.Mode && sameChanges(before.Changes, live.Changes) {
		return before, v, "", nil
	}
	switch {
	case e.Unset:
		text = fmt.Sprintf("%s unset%s (%v, was %v)", v.Key, s.suffix(), v.New, v.Old)
	default:
		text = fmt.Sprintf("%s=%v%s (was %v)", v.Key, v.New, s.suffix(), v.Old)
	}
	return live, v, text, nil
}

// value is what holds for the edit's place if live does.
func (e QuotaEdit) value(l *quota.Ledger, api string, s QuotaScope, live quota.Live) (any, error) {
	if e.Lane == "" {
		if live.Mode == "" {
			return s.mode, nil
		}
		return live.Mode, nil
	}
	settings, err := l.SettingsUnder(live, quota.Caller{Project: s.Project, User: s.Account, Lane: e.Lane}, api, s.Limit)
	return valueOf(settings, e.Key), err
}

// sameChanges reports whether two lists hold the same changes, in any order.
func sameChanges(a, b []quota.Change) bool {
	for _, c := range b {
		if !slices.Contains(a, c) {
			return false
		}
	}
	return len(a) == len(b)
}

// valueOf is the value of a lane's settings that a key names.
func valueOf(s quota.LaneSettings, key quota.Key) float64 {
	switch key {
	case quota.KeyCeiling:
		return s.Ceiling
	case quota.KeyFloor:
		return s.Floor
	case quota.KeyPace:
		return s.Pace
	}
	return float64(s.InFlight)
}
