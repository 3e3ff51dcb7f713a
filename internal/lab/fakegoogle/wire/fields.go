package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// A mask is a parsed `fields` parameter: what to keep of an object, by key. A
// nil mask keeps everything.
type mask map[string]mask

// parseMask reads "a,b/c,d(e,f/g)" and "*".
func parseMask(text string) (mask, error) {
	p := maskParser{rest: text}
	m, err := p.list()
	if err == nil && p.rest != "" {
		err = fmt.Errorf("unexpected %q", p.rest)
	}
	if err != nil {
		return nil, fmt.Errorf("fields %q: %w", text, err)
	}
	return m, nil
}

type maskParser struct{ rest string }

func (p *maskParser) list() (mask, error) {
	m := mask{}
	for {
		name, sub, err := p.path()
		if err != nil {
			return nil, err
		}
		m.add(name, sub)
		if !p.eat(',') {
			return m, nil
		}
	}
}

// path reads NAME, NAME/path or NAME(list).
func (p *maskParser) path() (string, mask, error) {
	p.rest = strings.TrimLeft(p.rest, " ")
	end := strings.IndexAny(p.rest, ",/() ")
	if end < 0 {
		end = len(p.rest)
	}
	name := p.rest[:end]
	if name == "" {
		return "", nil, fmt.Errorf("a name is missing before %q", p.rest)
	}
	p.rest = p.rest[end:]
	switch {
	case p.eat('/'):
		child, sub, err := p.path()
		return name, mask{child: sub}, err
	case p.eat('('):
		sub, err := p.list()
		if err == nil && !p.eat(')') {
			err = fmt.Errorf("a parenthesis is not closed")
		}
		return name, sub, err
	}
	return name, nil, nil
}

func (p *maskParser) eat(c byte) bool {
	p.rest = strings.TrimLeft(p.rest, " ")
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// add joins a path to the mask: the same key twice keeps both selections, and
// all of a key outdoes a part of it.
func (m mask) add(name string, sub mask) {
	have, ok := m[name]
	if !ok || sub == nil {
		m[name] = sub
		return
	}
	if have == nil {
		return
	}
	for child, grandchild := range sub {
		have.add(child, grandchild)
	}
}

// unknown returns a name that answers of type t never have, "" where there is
// none. Google refuses such a mask, and keeping quiet would hide a client's
// typing error.
func (m mask) unknown(t reflect.Type) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	for name, sub := range m {
		if name == "*" {
			continue
		}
		ft, ok := jsonField(t, name)
		if !ok {
			return name
		}
		if inner := sub.unknown(ft); inner != "" {
			return inner
		}
	}
	return ""
}

func jsonField(t reflect.Type, name string) (reflect.Type, bool) {
	if t.Kind() != reflect.Struct {
		return nil, false
	}
	for f := range t.Fields() {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f.Type, true
		}
	}
	return nil, false
}

// apply filters the JSON of an answer.
func (m mask) apply(answer []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(answer))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, fmt.Errorf("apply a field mask: %w", err)
	}
	return EncodeJSON(m.filter(v))
}

func (m mask) filter(v any) any {
	if m == nil {
		return v
	}
	switch v := v.(type) {
	case []any:
		kept := make([]any, len(v))
		for i := range v {
			kept[i] = m.filter(v[i])
		}
		return kept
	case map[string]any:
		kept := map[string]any{}
		for key, value := range v {
			if sub, ok := m[key]; ok {
				kept[key] = sub.filter(value)
			} else if sub, ok := m["*"]; ok {
				kept[key] = sub.filter(value)
			}
		}
		return kept
	}
	return v
}

// EncodeJSON is json.Marshal without the escapes for HTML, which Google does not
// make either.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("encode an answer: %w", err)
	}
	return b.Bytes(), nil
}
