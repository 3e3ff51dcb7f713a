// Package lenient decodes JSON whose fields may have another type than documented: a
// number instead of text, text instead of a number, one value instead of a list. It
// decodes every field that it can, and reports the others by name, so that an
// unexpected value costs only its own field.
//
// It knows no field by name. The caller decides what an unreadable field means.
package lenient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A Problem is a field that could not be read and was left zero.
type Problem struct {
	Field string // its path, such as attendees[0].self; "" for the value as a whole
	Found string // what stood there, such as "a list"
}

func (p Problem) String() string {
	if p.Field == "" {
		return "the value cannot be read: it is " + p.Found
	}
	return "field " + p.Field + " cannot be read: it is " + p.Found
}

// Problems are the problems of one value.
type Problems []Problem

// Of returns the problem of a field of the outermost object, or of a value below it.
func (all Problems) Of(field string) (Problem, bool) {
	i := slices.IndexFunc(all, func(p Problem) bool {
		rest, found := strings.CutPrefix(p.Field, field)
		return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
	if i < 0 {
		return Problem{}, false
	}
	return all[i], true
}

// ErrNull reports that the value is null.
var ErrNull = errors.New("the value is null")

// A TextReader makes a value of a type from text that stands in place of its object.
// Make it with [Text].
type TextReader struct {
	kind reflect.Type
	read func(string) reflect.Value
}

// Text makes a [TextReader].
func Text[T any](read func(string) T) TextReader {
	return TextReader{reflect.TypeFor[T](), func(s string) reflect.Value { return reflect.ValueOf(read(s)) }}
}

// Unmarshal decodes like [json.Unmarshal], and field by field if that fails for the
// type of a value. It returns an error if the text is not JSON, [ErrNull] if it is
// null, and an error if the outermost value does not fit the type of to.
func Unmarshal(text []byte, to any, texts ...TextReader) (Problems, error) {
	if bytes.Equal(bytes.TrimSpace(text), []byte("null")) {
		return nil, ErrNull
	}
	err := json.Unmarshal(text, to)
	if _, syntax := errors.AsType[*json.SyntaxError](err); err == nil || syntax {
		return nil, err
	}
	var value any
	tree := json.NewDecoder(bytes.NewReader(text))
	tree.UseNumber()
	if err := tree.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := tree.Token(); err != io.EOF {
		return nil, errors.New("there is more than one value")
	}
	d := decoder{texts: texts}
	target := reflect.ValueOf(to).Elem()
	target.SetZero()
	d.set("", target, value)
	if p, whole := d.whole(); whole {
		return nil, errors.New(p.String())
	}
	return d.problems, nil
}

type decoder struct {
	texts    []TextReader
	problems Problems
}

func (d *decoder) whole() (Problem, bool) {
	i := slices.IndexFunc(d.problems, func(p Problem) bool { return p.Field == "" })
	if i < 0 {
		return Problem{}, false
	}
	return d.problems[i], true
}

// set decodes one value. Null leaves the zero value, as in encoding/json.
func (d *decoder) set(path string, to reflect.Value, from any) {
	if from == nil {
		return
	}
	if to.CanAddr() {
		if own, ok := to.Addr().Interface().(json.Unmarshaler); ok {
			text, err := json.Marshal(from)
			if err != nil || own.UnmarshalJSON(text) != nil {
				d.refuse(path, from)
			}
			return
		}
	}
	if text, ok := from.(string); ok {
		for _, t := range d.texts {
			if t.kind == to.Type() {
				to.Set(t.read(text))
				return
			}
		}
	}
	switch to.Kind() {
	case reflect.Pointer:
		d.setPointer(path, to, from)
	case reflect.Interface:
		to.Set(reflect.ValueOf(from))
	case reflect.Struct:
		d.setStruct(path, to, from)
	case reflect.Slice:
		d.setSlice(path, to, from)
	case reflect.Map:
		d.setMap(path, to, from)
	default:
		if !setScalar(to, from) {
			d.refuse(path, from)
		}
	}
}

func (d *decoder) refuse(path string, from any) {
	d.problems = append(d.problems, Problem{Field: path, Found: kindOf(from)})
}

// setPointer leaves nil if the value cannot be read.
func (d *decoder) setPointer(path string, to reflect.Value, from any) {
	before := len(d.problems)
	one := reflect.New(to.Type().Elem())
	d.set(path, one.Elem(), from)
	if refused := slices.ContainsFunc(d.problems[before:], func(p Problem) bool { return p.Field == path }); !refused {
		to.Set(one)
	}
}

func (d *decoder) setStruct(path string, to reflect.Value, from any) {
	object, ok := from.(map[string]any)
	if !ok {
		d.refuse(path, from)
		return
	}
	for i := range to.NumField() {
		field := to.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() {
			continue
		}
		if name == "" {
			name = field.Name
		}
		if value, found := object[name]; found {
			d.set(join(path, name), to.Field(i), value)
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// setSlice decodes a single value as a list of one. It leaves out the elements that
// cannot be read.
func (d *decoder) setSlice(path string, to reflect.Value, from any) {
	if to.Type().Elem().Kind() == reflect.Uint8 {
		d.refuse(path, from)
		return
	}
	list, ok := from.([]any)
	if !ok {
		list = []any{from}
	}
	all := reflect.MakeSlice(to.Type(), 0, len(list))
	for i, value := range list {
		at := path
		if ok {
			at = fmt.Sprintf("%s[%d]", path, i)
		}
		before := len(d.problems)
		one := reflect.New(to.Type().Elem()).Elem()
		d.set(at, one, value)
		if value == nil && !ok || slices.ContainsFunc(d.problems[before:], func(p Problem) bool { return p.Field == at }) {
			continue
		}
		all = reflect.Append(all, one)
	}
	to.Set(all)
}

func (d *decoder) setMap(path string, to reflect.Value, from any) {
	object, ok := from.(map[string]any)
	if !ok || to.Type().Key().Kind() != reflect.String {
		d.refuse(path, from)
		return
	}
	all := reflect.MakeMap(to.Type())
	for name, value := range object {
		one := reflect.New(to.Type().Elem()).Elem()
		d.set(join(path, name), one, value)
		all.SetMapIndex(reflect.ValueOf(name).Convert(to.Type().Key()), one)
	}
	to.Set(all)
}

// setScalar reports whether the value could be read as text, a number or a truth
// value.
func setScalar(to reflect.Value, from any) bool {
	var text string
	switch value := from.(type) {
	case string:
		text = value
	case json.Number:
		text = value.String()
	case bool:
		text = strconv.FormatBool(value)
	default:
		return false
	}
	if to.Kind() == reflect.String {
		to.SetString(text)
		return true
	}
	if text = strings.TrimSpace(text); text == "" {
		return true // Google writes a missing value like this; it is zero
	}
	switch to.Kind() {
	case reflect.Bool:
		value, err := strconv.ParseBool(strings.ToLower(text))
		to.SetBool(value)
		return err == nil
	case reflect.Float32, reflect.Float64:
		value, err := strconv.ParseFloat(text, 64)
		if err != nil || to.OverflowFloat(value) {
			return false
		}
		to.SetFloat(value)
		return true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		value, ok := integer(text)
		if !ok || to.OverflowInt(value) {
			return false
		}
		to.SetInt(value)
		return true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		value, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			signed, ok := integer(text)
			if !ok || signed < 0 {
				return false
			}
			value = uint64(signed)
		}
		if to.OverflowUint(value) {
			return false
		}
		to.SetUint(value)
		return true
	}
	return false
}

// integer reads a whole number, also in the forms 4.3e3 or 12.0; it drops the
// fraction.
func integer(text string) (int64, bool) {
	if value, err := strconv.ParseInt(text, 10, 64); err == nil {
		return value, true
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(value) || math.Abs(value) >= 1<<63 || !strings.ContainsAny(text, ".eE") {
		return 0, false
	}
	return int64(value), true
}

// kindOf describes what stands in a field's place, without quoting it.
func kindOf(value any) string {
	switch value.(type) {
	case string:
		return "text"
	case json.Number:
		return "a number"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "null"
}
