package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds the size of a settings file, in bytes.
const maxFile = 1 << 20

// Options says where settings come from, besides the defaults.
type Options struct {
	Path     string   // of the settings file; "": none is read
	Optional bool     // a file that is missing counts as an empty one
	Environ  []string // as os.Environ gives it; only HEADROOM_* is looked at
	Set      []string // key=value, from the command line
}

// An InvalidError lists everything that is wrong with the settings. Its text is
// one line.
type InvalidError struct {
	Problems []error // each names its key and the rule
}

func (e *InvalidError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.Error()
	}
	return "settings: " + strings.Join(texts, "; ")
}

// Unwrap makes each problem visible to [errors.Is] and [errors.As].
func (e *InvalidError) Unwrap() []error { return e.Problems }

// Load reads the settings from all of their sources and validates them. It
// returns an *[InvalidError] that holds every problem found, or another error
// when the file cannot be read at all.
func Load(o Options) (Config, error) {
	cfg, _, err := Read(o)
	if err != nil {
		return Config{}, err
	}
	return cfg, nil
}

// Read is [Load] that also returns where the settings are from. The problems that it
// returns tell their places already; beside them are the settings as far as they could
// be read, in which others may look for more.
func Read(o Options) (Config, *Sources, error) {
	cfg, from := Default(), &Sources{at: map[string]string{}}
	var problems []error
	if o.Path != "" {
		data, err := readFile(o.Path, o.Optional)
		if err != nil {
			return Config{}, from, err
		}
		if data != nil {
			from.File = o.Path
		}
		problems = append(problems, decode(&cfg, o.Path, data)...)
		for line, keys := range keysByLine(data) {
			for _, key := range keys {
				if _, known := from.at[key]; !known || line < from.line(key) {
					from.at[key] = fmt.Sprintf("%s:%d", o.Path, line)
				}
			}
		}
	}
	problems = append(problems, applyEnviron(&cfg, o.Environ, from)...)
	for _, s := range o.Set {
		if err := applySet(&cfg, s, from); err != nil {
			problems = append(problems, err)
		}
	}
	cfg.complete()
	problems = append(problems, from.located(cfg)...)
	if len(problems) > 0 {
		return cfg, from, &InvalidError{Problems: problems}
	}
	return cfg, from, nil
}

// line is the line of the file in which a key stands that the file has.
func (s *Sources) line(key string) int {
	at := s.at[key]
	n, _ := strconv.Atoi(at[strings.LastIndex(at, ":")+1:])
	return n
}

// located is what is wrong with values, each with its place. What is odd about a text
// is told instead of what follows from it.
func (s *Sources) located(cfg Config) []error {
	odd := oddValues(reflect.ValueOf(cfg), "")
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(odd)) {
		problems = append(problems, odd[key])
	}
	if err := cfg.Validate(); err != nil {
		for _, p := range flatten(err) {
			key, _, _ := strings.Cut(p.Error(), ": ")
			if odd[key] == nil {
				problems = append(problems, p)
			}
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return s.Locate(&InvalidError{Problems: problems}).(*InvalidError).Problems
}

func readFile(path string, optional bool) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if optional {
			return nil, nil
		}
		if odd := oddText(path); odd != "" {
			return nil, fmt.Errorf("settings file %q: %w; its name %s", path, fs.ErrNotExist, odd)
		}
		return nil, fmt.Errorf("settings file %s: %w; create it or name another with --config", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("settings file %s: %w; name a file that can be read with --config", path, cause(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("settings file %s: %w; name a file that can be read with --config", path, cause(err))
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("settings file %s is larger than %d bytes; is it the right file?", path, maxFile)
	}
	return data, nil
}

// cause leaves out the path and the call, which whoever reads it knows.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// decode reads a YAML document over cfg. It returns every problem, as
// FILE:LINE: KEY: what.
func decode(cfg *Config, file string, data []byte) []error {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	err := dec.Decode(cfg)
	if errors.Is(err, io.EOF) {
		return nil
	}
	var problems []error
	var types *yaml.TypeError
	switch {
	case errors.As(err, &types):
		keys := keysByLine(data)
		for _, text := range types.Errors {
			if !strings.HasSuffix(text, zeroDuration) {
				problems = append(problems, typeProblem(file, text, keys))
			}
		}
	case err != nil:
		text := strings.TrimPrefix(err.Error(), "yaml: ")
		if m := lineForm.FindStringSubmatch(text); m != nil {
			return []error{fmt.Errorf("%s:%s: %s", file, m[1], m[2])}
		}
		if line, odd := controlCharacter(data); odd != "" {
			return []error{fmt.Errorf("%s:%d: %s", file, line, odd)}
		}
		return []error{fmt.Errorf("%s: %s", file, text)}
	}
	var doc yaml.Node
	if yaml.Unmarshal(data, &doc) == nil {
		for _, key := range zeroDurations(&doc, reflect.TypeFor[Config](), nil) {
			if err := set(reflect.ValueOf(cfg).Elem(), key, "0"); err != nil {
				problems = append(problems, fmt.Errorf("%s: %s: %w", file, strings.Join(key, "."), err))
			}
		}
		for _, c := range cuts(&doc, reflect.TypeFor[Config](), "") {
			problems = append(problems, fmt.Errorf("%s:%d: %s: %s", file, c.line, c.key, c.what))
		}
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		problems = append(problems, fmt.Errorf("%s: must hold one YAML document, not several", file))
	}
	return problems
}

var (
	lineForm    = regexp.MustCompile(`(?s)^line (\d+): (.*)$`)
	unknownForm = regexp.MustCompile(`^field (.*) not found in type config\.\w+$`)
	unreadForm  = regexp.MustCompile("(?s)^cannot unmarshal (!!\\w+)(?: `(.*)`)? into (\\S+)$")
)

// typeProblem says in the words of the settings what yaml says in the words of
// Go types.
func typeProblem(file, text string, keys map[int][]string) error {
	m := lineForm.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("%s: %s", file, text)
	}
	line, _ := strconv.Atoi(m[1])
	what := m[2]
	key := ""
	if on := keys[line]; len(on) > 0 {
		key = on[len(on)-1]
	}
	if f := unknownForm.FindStringSubmatch(what); f != nil {
		for _, k := range keys[line] {
			if k == f[1] || strings.HasSuffix(k, "."+f[1]) {
				key = k
			}
		}
		what = errUnknownKey.Error()
		switch section, rest, dotted := strings.Cut(f[1], "."); {
		case dotted && slices.Contains(Keys(), key):
			what += fmt.Sprintf(" with dots; in a file write %s: and, indented below it, %s:", section, strings.ReplaceAll(rest, ".", ": and below that "))
		case !slices.Contains(Keys(), key): // it is one where an alias repeats a section of another kind
			what += meant(key, Keys())
		}
		if odd := oddText(f[1]); odd != "" {
			what = "the name " + odd
		}
	} else if u := unreadForm.FindStringSubmatch(what); u != nil {
		what = unread(u[1], u[2], u[3])
	}
	if key == "" {
		return fmt.Errorf("%s:%d: the file %s", file, line, what)
	}
	return fmt.Errorf("%s:%d: %s: %s", file, line, key, what)
}

// controlCharacter finds the first one that YAML does not allow, and its line.
func controlCharacter(data []byte) (line int, what string) {
	line = 1
	for _, r := range string(data) {
		switch {
		case r == '\n':
			line++
		case r != '\t' && r != '\r' && r != '\u0085' && unicode.IsControl(r):
			return line, fmt.Sprintf("holds a control character (%U); remove it", r)
		}
	}
	return 0, ""
}

// unread says that a value of a YAML tag does not fit a Go type.
func unread(tag, value, goType string) string {
	wanted := map[string]string{
		"int": "a whole number", "int64": "a whole number", "float64": "a number", "string": "a text",
		"time.Duration": "a duration such as 5s", "[]string": "a list", "bool": "true or false",
	}[strings.TrimPrefix(goType, "*")]
	if wanted == "" {
		wanted = "a section with keys of its own"
	}
	if value == "" {
		value = map[string]string{"!!map": "a section", "!!seq": "a list"}[tag]
		return fmt.Sprintf("must be %s, not %s", wanted, value)
	}
	if tag == "!!str" && wanted != "a text" && !strings.HasPrefix(wanted, "a section") && plain(value) {
		return fmt.Sprintf("must be %s, not the text %q; leave out the quotes", wanted, value)
	}
	return fmt.Sprintf("must be %s, not %q", wanted, value)
}

// plain reports whether a text would be something else without the quotes around it.
func plain(value string) bool {
	var node yaml.Node
	return yaml.Unmarshal([]byte(value), &node) == nil && len(node.Content) == 1 && node.Content[0].ShortTag() != "!!str"
}

// keysByLine maps the lines of a document to the dotted keys that stand, or
// whose values begin, there.
func keysByLine(data []byte) map[int][]string {
	var doc yaml.Node
	keys := make(map[int][]string)
	if yaml.Unmarshal(data, &doc) != nil {
		return keys
	}
	var walk func(n *yaml.Node, path string)
	walk = func(n *yaml.Node, path string) {
		switch n.Kind {
		case yaml.DocumentNode, yaml.SequenceNode:
			for _, c := range n.Content {
				walk(c, path)
			}
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				name, value := n.Content[i], n.Content[i+1]
				key := joinKey(path, name.Value)
				keys[name.Line] = append(keys[name.Line], key)
				if value.Line != name.Line {
					keys[value.Line] = append(keys[value.Line], key)
				}
				walk(value, key)
			}
		}
	}
	walk(&doc, "")
	return keys
}

func joinKey(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// flatten takes a joined error apart.
func flatten(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}
