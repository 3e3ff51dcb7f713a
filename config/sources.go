package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"
)

// Sources records where settings were read from. Make it with [Read].
type Sources struct {
	// File is the settings file that was read; "" if there was none.
	File string

	at map[string]string // by key: file and line, a variable of the environment, or --set
}

// fromSet is the source of settings of the command line.
const fromSet = "--set"

// Locate prefixes each problem of an [*InvalidError] with the source of its setting, or
// of the section that lacks it. It returns other errors, and problems that have their
// source already, unchanged.
func (s *Sources) Locate(err error) error {
	invalid, ok := errors.AsType[*InvalidError](err)
	if !ok || s == nil || invalid.Error() != err.Error() { // it says more than the problems
		return err
	}
	return &InvalidError{Problems: s.locate(invalid.Problems)}
}

func (s *Sources) locate(problems []error) (located []error) {
	for _, p := range problems {
		if at := s.find(p.Error()); at != "" {
			between := ": "
			if at == fromSet {
				between = " " // as in a command line
			}
			p = fmt.Errorf("%s%s%w", at, between, p)
		}
		located = append(located, p)
	}
	return located
}

// find returns the source of the longest key with which a problem begins. For a problem
// of the file that has no line, it returns the file's name.
func (s *Sources) find(problem string) string {
	longest, at := -1, ""
	for key, place := range s.at {
		rest, ok := strings.CutPrefix(problem, key)
		if ok && len(key) > longest && (strings.HasPrefix(rest, ":") || strings.HasPrefix(rest, ".")) {
			longest, at = len(key), place
		}
	}
	if longest < 0 && s.File != "" {
		for _, key := range Keys() {
			section, _, _ := strings.Cut(key, ".")
			if strings.HasPrefix(problem, section+".") || strings.HasPrefix(problem, section+":") {
				return s.File
			}
		}
	}
	return at
}

// oddText describes characters around or in a value that are there by mistake; "" if
// there are none.
func oddText(text string) string {
	if text == "" {
		return ""
	}
	runes := []rune(text)
	first, last := runes[0], runes[len(runes)-1]
	blank := func(r rune) bool { return unicode.IsSpace(r) || r == '\u200b' || r == '\u2060' }
	switch {
	case strings.ContainsRune(text, '\ufeff'):
		return "holds a byte order mark (U+FEFF); remove it"
	case strings.ContainsRune(text, '\r'):
		return `holds a carriage return (\r), as lines end on Windows; remove it`
	case blank(first):
		return fmt.Sprintf("begins with a blank (%U); remove it", first)
	case blank(last):
		return fmt.Sprintf("ends with a blank (%U); remove it", last)
	case len(runes) > 1 && strings.ContainsRune(`"'“”„‘’`, first) && strings.ContainsRune(`"'“”‘’`, last):
		return "stands in quotes, which would count as part of it; leave them out"
	}
	return ""
}

// oddValues returns a problem for each text below v that has such characters, by key.
func oddValues(v reflect.Value, path string) map[string]error {
	odd := map[string]error{}
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		switch v.Kind() {
		case reflect.Struct:
			if v.Type() == costType {
				return
			}
			for i := range v.NumField() {
				walk(v.Field(i), joinKey(path, v.Type().Field(i).Tag.Get("yaml")))
			}
		case reflect.Map:
			for it := v.MapRange(); it.Next(); {
				walk(it.Value(), joinKey(path, it.Key().String()))
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i), path)
			}
		case reflect.String:
			if what := oddText(v.String()); what != "" {
				odd[path] = fmt.Errorf("%s: the value %s", path, what)
			}
		}
	}
	walk(v, path)
	return odd
}

// meant returns the end of a message about an unknown name: the known name that was
// probably meant, or nothing.
func meant(name string, names []string) string {
	best, least := "", max(2, len(name)/6)+1
	for _, candidate := range names {
		if d := distance(strings.ToLower(name), strings.ToLower(candidate)); d < least {
			best, least = candidate, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distance returns how many letters must be changed, inserted or removed to turn a into
// b; two swapped neighbours count as one.
func distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row := rows[0], rows[1], rows[2]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		rows[0], rows[1], rows[2] = last, row, before
	}
	return rows[1][len(b)]
}
