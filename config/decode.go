package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// A decoder reads a YAML document over settings. It goes on after a problem, so that
// it reports all of them.
type decoder struct {
	file     string
	lines    map[string]int // by key: where it stands first
	problems []problem
	alias    int // line of the alias whose section is read; 0: none
}

// A problem is what is wrong on a line of a document.
type problem struct {
	line      int    // 0: with the document as a whole
	key, what string // no key: with no setting
}

// errors returns the problems as FILE:LINE: KEY: what.
func (d *decoder) errors() []error {
	var all []error
	for _, p := range d.problems {
		text := d.file + ": "
		if p.line > 0 {
			text = fmt.Sprintf("%s:%d: ", d.file, p.line)
		}
		if p.key != "" {
			text += p.key + ": "
		}
		all = append(all, errors.New(text+p.what))
	}
	return all
}

// decode reads a YAML document over cfg.
func decode(cfg *Config, file string, data []byte) *decoder {
	d := &decoder{file: file, lines: map[string]int{}}
	parser := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := parser.Decode(&doc); errors.Is(err, io.EOF) {
		return d
	} else if err != nil {
		d.syntax(err.Error(), data)
		return d
	}
	// The parser looks for keys that stand twice and for aliases without end only
	// when it makes values.
	if err := doc.Decode(new(any)); err != nil {
		types, ok := errors.AsType[*yaml.TypeError](err)
		if !ok {
			d.syntax(err.Error(), data)
			return d
		}
		for _, text := range types.Errors {
			d.syntax(text, data)
		}
	}
	for _, top := range doc.Content {
		d.node(top, reflect.ValueOf(cfg).Elem(), "")
	}
	if err := parser.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		d.problems = append(d.problems, problem{what: "must hold one YAML document, not several"})
	}
	return d
}

var lineForm = regexp.MustCompile(`(?s)^(?:yaml: )?line (\d+): (.*)$`)

// syntax reports what the parser says, with its line.
func (d *decoder) syntax(text string, data []byte) {
	p := problem{what: strings.TrimPrefix(text, "yaml: ")}
	if m := lineForm.FindStringSubmatch(text); m != nil {
		p.line, _ = strconv.Atoi(m[1])
		p.what = m[2]
	} else if line, odd := controlCharacter(data); odd != "" {
		p = problem{line: line, what: odd}
	}
	d.problems = append(d.problems, p)
}

// line is where a key stands, as a reader of the file sees it: what an alias repeats
// stands at the alias.
func (d *decoder) line(name *yaml.Node) int {
	if d.alias > 0 {
		return d.alias
	}
	return name.Line
}

func (d *decoder) problem(line int, key, what string) {
	if key == "" {
		what = "the file " + what
	}
	d.problems = append(d.problems, problem{line, key, what})
}

// node gives v, the setting or section named key, the value that stands at n. A value
// that is left empty keeps the default of a setting and empties a list.
func (d *decoder) node(n *yaml.Node, v reflect.Value, key string) {
	switch {
	case n.Kind == yaml.AliasNode:
		outer := d.alias
		d.alias = d.line(n)
		d.node(n.Alias, v, key)
		d.alias = outer
	case n.ShortTag() == "!!null":
		if k := v.Kind(); k == reflect.Pointer || k == reflect.Map || k == reflect.Slice {
			v.SetZero()
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.node(n, v.Elem(), key)
	case v.Type() == costType && n.Kind == yaml.MappingNode:
		formats := map[string]int64{}
		d.node(n, reflect.ValueOf(&formats).Elem(), key)
		v.Set(reflect.ValueOf(Cost{Formats: formats}))
	case v.Type() == costType:
		v.SetZero()
		d.node(n, v.FieldByName("Units"), key)
	case v.Kind() == reflect.Struct || v.Kind() == reflect.Map:
		d.section(n, v, key)
	case v.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode:
		v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
		for i, item := range n.Content {
			d.node(item, v.Index(i), key)
		}
	default:
		if what := leaf(n, v); what != "" {
			d.problem(n.Line, key, what)
		}
	}
}

// section reads a mapping. What it merges counts less than what stands in it.
func (d *decoder) section(n *yaml.Node, v reflect.Value, key string) {
	if n.Kind != yaml.MappingNode {
		d.problem(n.Line, key, unread(n, v.Type()))
		return
	}
	if v.Kind() == reflect.Map && v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() == "!!merge" {
			d.merge(n.Content[i+1], v, key)
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if name.ShortTag() == "!!merge" {
			continue
		}
		below := joinKey(key, name.Value)
		if at, known := d.lines[below]; !known || d.line(name) < at {
			d.lines[below] = d.line(name)
		}
		if v.Kind() == reflect.Map {
			elem, before := reflect.New(v.Type().Elem()).Elem(), len(d.problems)
			d.node(value, elem, below)
			if v.Type().Elem() != costType || len(d.problems) == before {
				v.SetMapIndex(reflect.ValueOf(name.Value), elem)
			}
		} else if f := field(v, name.Value); f.IsValid() {
			d.node(value, f, below)
		} else {
			d.problem(d.line(name), below, unknown(name.Value, below))
		}
	}
}

// merge reads one mapping, or several of which the first counts most.
func (d *decoder) merge(n *yaml.Node, v reflect.Value, key string) {
	if n.Kind != yaml.SequenceNode {
		d.node(n, v, key)
		return
	}
	for _, part := range slices.Backward(n.Content) {
		d.node(part, v, key)
	}
}

// field is the field of a section for a name, or the zero Value.
func field(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("yaml") == name {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

// unknown says why a name in a section is no setting.
func unknown(name, key string) string {
	if odd := oddText(name); odd != "" {
		return "the name " + odd
	}
	section, rest, dotted := strings.Cut(name, ".")
	known := slices.Contains(Keys(), key)
	switch {
	case dotted && known:
		return fmt.Sprintf("%s with dots; in a file write %s: and, indented below it, %s:", errUnknownKey, section, strings.ReplaceAll(rest, ".", ": and below that "))
	case known: // an alias repeats a section of another kind
		return errUnknownKey.Error()
	}
	return errUnknownKey.Error() + meant(key, Keys())
}

// leaf gives one setting the value of a scalar, and returns why it cannot; "" if it
// can. Zero is the only number that is a duration without a unit, and a number is
// never cut to fit.
func leaf(n *yaml.Node, v reflect.Value) (problem string) {
	duration := v.Type() == reflect.TypeFor[time.Duration]()
	if duration && n.ShortTag() == "!!int" && n.Value == "0" {
		v.SetZero()
		return ""
	}
	if n.ShortTag() == "!!float" && (duration || v.CanInt() && !whole(n)) {
		return unread(n, v.Type())
	}
	target := v.Addr().Interface()
	if err := n.Decode(target); err != nil {
		if _, ok := target.(yaml.Unmarshaler); ok {
			return err.Error()
		}
		return unread(n, v.Type())
	}
	return ""
}

// whole reports whether a number with a point or an exponent is an integer.
func whole(n *yaml.Node) bool {
	var f float64
	return n.Decode(&f) == nil && f == math.Trunc(f) && math.Abs(f) <= math.MaxInt64
}

// unread says that a value does not fit the type of its setting.
func unread(n *yaml.Node, t reflect.Type) string {
	wanted := map[reflect.Type]string{
		reflect.TypeFor[int]():           "a whole number",
		reflect.TypeFor[int64]():         "a whole number",
		reflect.TypeFor[float64]():       "a number",
		reflect.TypeFor[string]():        "a text",
		reflect.TypeFor[URL]():           "a text",
		reflect.TypeFor[time.Duration](): "a duration such as 5s",
		reflect.TypeFor[[]string]():      "a list",
		reflect.TypeFor[bool]():          "true or false",
	}[t]
	if wanted == "" {
		wanted = "a section with keys of its own"
	}
	switch {
	case n.Kind == yaml.MappingNode:
		return fmt.Sprintf("must be %s, not a section", wanted)
	case n.Kind == yaml.SequenceNode:
		return fmt.Sprintf("must be %s, not a list", wanted)
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 && t.Kind() != reflect.Struct && t.Kind() != reflect.Map && !isText(n.Value):
		return fmt.Sprintf("must be %s, not the text %q; leave out the quotes", wanted, n.Value)
	}
	return fmt.Sprintf("must be %s, not %q", wanted, n.Value)
}

// isText reports whether a value is a text without quotes around it too.
func isText(value string) bool {
	return (&yaml.Node{Kind: yaml.ScalarNode, Value: value}).ShortTag() == "!!str"
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
