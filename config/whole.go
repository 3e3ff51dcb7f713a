package config

import (
	"math"
	"reflect"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// A cut is a number that yaml would cut to fit its setting, without a word.
type cut struct {
	key  string
	line int
	what string
}

// cuts finds the numbers below n that are not whole although the settings of
// type t, whose key is path, are. The document must have been decoded before.
func cuts(n *yaml.Node, t reflect.Type, path string) []cut {
	var found []cut
	switch {
	case n.Kind == yaml.AliasNode:
		return cuts(n.Alias, t, path)
	case t.Kind() == reflect.Pointer:
		return cuts(n, t.Elem(), path)
	case n.Kind == yaml.DocumentNode || n.Kind == yaml.SequenceNode: // a sequence of mappings to merge
		for _, c := range n.Content {
			found = append(found, cuts(c, t, path)...)
		}
	case n.Kind == yaml.ScalarNode:
		if text, ok := cutNumber(n, t); ok {
			found = append(found, cut{path, n.Line, text})
		}
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i].Value
			if name == "<<" {
				found = append(found, cuts(n.Content[i+1], t, path)...)
			} else if below := typeBelow(t, name); below != nil {
				found = append(found, cuts(n.Content[i+1], below, joinKey(path, name))...)
			}
		}
	}
	return found
}

// zeroDuration ends what yaml says of a duration that is the number 0. Of all numbers
// it alone needs no unit.
const zeroDuration = "cannot unmarshal !!int `0` into time.Duration"

func isDuration(t reflect.Type) bool {
	return t == reflect.TypeFor[time.Duration]() || t == reflect.TypeFor[*time.Duration]()
}

// zeroDurations finds the durations below n that are the number 0, by their keys.
func zeroDurations(n *yaml.Node, t reflect.Type, path []string) (keys [][]string) {
	switch {
	case n.Kind == yaml.AliasNode:
		return zeroDurations(n.Alias, t, path)
	case isDuration(t):
		if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!int" && n.Value == "0" {
			return [][]string{path}
		}
	case t.Kind() == reflect.Pointer:
		return zeroDurations(n, t.Elem(), path)
	case n.Kind == yaml.DocumentNode || n.Kind == yaml.SequenceNode:
		for _, c := range n.Content {
			keys = append(keys, zeroDurations(c, t, path)...)
		}
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if name := n.Content[i].Value; name == "<<" {
				keys = append(keys, zeroDurations(n.Content[i+1], t, path)...)
			} else if below := typeBelow(t, name); below != nil {
				keys = append(keys, zeroDurations(n.Content[i+1], below, append(slices.Clone(path), name))...)
			}
		}
	}
	return keys
}

// typeBelow is the type of what a mapping that becomes a t holds under name, or
// nil.
func typeBelow(t reflect.Type, name string) reflect.Type {
	switch {
	case t == costType:
		return reflect.TypeFor[int64]()
	case t.Kind() == reflect.Map:
		return t.Elem()
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).Tag.Get("yaml") == name {
				return t.Field(i).Type
			}
		}
	}
	return nil
}

// cutNumber reports whether yaml would cut a number on its way into a t, and what
// to say of it. It refuses those above all whole numbers, and NaN, by itself; any
// number without a unit that becomes a duration would count as nanoseconds.
func cutNumber(n *yaml.Node, t reflect.Type) (text string, ok bool) {
	if t == costType {
		t = reflect.TypeFor[int64]()
	}
	duration := t == reflect.TypeFor[time.Duration]()
	whole := t == reflect.TypeFor[int]() || t == reflect.TypeFor[int64]()
	if !duration && !whole || n.ShortTag() != "!!float" {
		return "", false
	}
	var f float64
	if n.Decode(&f) != nil || !(f <= math.MaxInt64) {
		return "", false
	}
	if whole && f == math.Trunc(f) && f >= math.MinInt64 {
		return "", false
	}
	return unread("!!float", n.Value, t.String()), true
}
