package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
)

// maxFile bounds the size of a settings file, in bytes.
const maxFile = 1 << 20

// Options names the sources of the settings, besides the defaults.
type Options struct {
	Path     string   // of the settings file; "": none is read
	Optional bool     // a file that is missing counts as an empty one
	Environ  []string // as os.Environ gives it; only HEADROOM_* is looked at
	Set      []string // key=value, from the command line
}

// An InvalidError lists all problems of the settings. Its text is one line.
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

// Read is [Load] that also returns the source of each setting. The problems include
// their sources. With an error it returns the settings as far as they could be read, so
// that the caller can look for more problems.
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
		d := decode(&cfg, o.Path, data)
		problems = append(problems, d.errors()...)
		for key, line := range d.lines {
			from.at[key] = fmt.Sprintf("%s:%d", o.Path, line)
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

// located returns the problems of values, each with its source. An odd text is reported
// instead of the problems that follow from it.
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
	return s.locate(problems)
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

// cause removes the path and the call, which the message already has.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

func joinKey(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// flatten returns the parts of a joined error.
func flatten(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}
