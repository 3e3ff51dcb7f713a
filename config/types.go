package config

import (
	"fmt"
	"math"
	"net/url"
	"regexp"
	"strings"

	"github.com/dustin/go-humanize"
	"go.yaml.in/yaml/v3"
)

// URL is a URL of the settings, which may hold credentials. Printing it in any way
// redacts them; only [URL.Reveal] returns them.
type URL string

// Reveal returns the URL with its credentials.
func (u URL) Reveal() string { return string(u) }

// redacted replaces credentials.
const redacted = "xxxxx"

// secretName matches parameters of a query that are redacted.
var secretName = regexp.MustCompile(`(?i)pass|pwd|token|secret|key|auth|sig|cred|code`)

// String returns the URL without credentials: a password, a user without a password
// (which is a token, except for Redis), a fragment, and parameters whose name matches
// secretName.
func (u URL) String() string {
	parsed, err := url.Parse(string(u))
	if err != nil || parsed.Host == "" && strings.Contains(string(u), "@") {
		// It may hold credentials all the same.
		text, _, _ := strings.Cut(string(u), "?")
		if at := strings.LastIndexByte(text, '@'); at >= 0 {
			return "<redacted>" + text[at:]
		}
		return text
	}
	if name, _, known := strings.Cut(parsed.User.String(), ":"); name != "" && !known && !strings.HasPrefix(parsed.Scheme, "redis") {
		parsed.User = url.User(redacted)
	}
	q, changed := parsed.Query(), false
	for name := range q {
		if secretName.MatchString(name) {
			q.Set(name, redacted)
			changed = true
		}
	}
	if changed {
		parsed.RawQuery = q.Encode()
	}
	if parsed.Fragment != "" {
		parsed.Fragment, parsed.RawFragment = redacted, ""
	}
	return parsed.Redacted()
}

// urls converts texts that may be URLs by mistake, so that they are printed redacted.
func urls(texts []string) []URL {
	all := make([]URL, len(texts))
	for i, text := range texts {
		all[i] = URL(text)
	}
	return all
}

// GoString keeps the password out of %#v.
func (u URL) GoString() string { return fmt.Sprintf("config.URL(%q)", u.String()) }

// MarshalText makes JSON and other encoders print the redacted form.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// MarshalYAML prints the redacted form.
func (u URL) MarshalYAML() (any, error) { return u.String(), nil }

// Cost is what a method costs, in units: the same for every request, or for some
// values of its format parameter. It is written as a number, or as numbers by
// format such as {full: 60, raw: 60}.
type Cost struct {
	Units   int64            // for every request, unless Formats says otherwise
	Formats map[string]int64 // by format; nil: Units for all
}

// MarshalYAML prints the form that the settings use.
func (c Cost) MarshalYAML() (any, error) {
	if c.Formats != nil {
		return c.Formats, nil
	}
	return c.Units, nil
}

// Bytes is an amount of memory. It is written as a number of bytes or with a
// unit, such as 128MiB.
type Bytes int64

var bytesForm = regexp.MustCompile(`^[0-9]+(\.[0-9]+)? ?[A-Za-z]*$`)

// UnmarshalYAML reads both ways of writing.
func (b *Bytes) UnmarshalYAML(node *yaml.Node) error {
	n, err := humanize.ParseBytes(node.Value)
	if node.Kind != yaml.ScalarNode || !bytesForm.MatchString(node.Value) || err != nil || n > math.MaxInt64 {
		return fmt.Errorf("cannot read %q as an amount of memory such as 128MiB", node.Value)
	}
	*b = Bytes(n)
	return nil
}

// String returns the amount with its largest unit that is exact.
func (b Bytes) String() string {
	for _, u := range []struct {
		size Bytes
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if b != 0 && b%u.size == 0 {
			return fmt.Sprintf("%d%s", b/u.size, u.name)
		}
	}
	return fmt.Sprintf("%dB", int64(b))
}

// MarshalYAML prints what [Bytes.String] does.
func (b Bytes) MarshalYAML() (any, error) { return b.String(), nil }
