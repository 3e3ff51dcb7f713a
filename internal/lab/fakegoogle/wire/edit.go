package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// An Edit changes fields of a true answer. A field is named by its path: names and
// places in lists with dots between, such as "items.0.etag"; the place behind the
// last item of a list is a new one.
type Edit struct {
	// Set is what fields are instead, in JSON.
	Set map[string]json.RawMessage `json:"set,omitempty"`
	// Unset are fields that are missing. An item that is taken out of a list leaves
	// no gap.
	Unset []string `json:"unset,omitempty"`
}

func (e Edit) any() bool { return len(e.Set) > 0 || len(e.Unset) > 0 }

// Validate reports what makes an edit meaningless.
func (e Edit) Validate() error {
	var problems []error
	for path, value := range e.Set {
		if path == "" || !json.Valid(value) {
			problems = append(problems, fmt.Errorf("set %q must be a path, and its value JSON", path))
		}
	}
	if slices.Contains(e.Unset, "") {
		problems = append(problems, errors.New("unset names no field"))
	}
	return errors.Join(problems...)
}

// apply edits an answer. What a path leads to nowhere in stays as it is.
func (e Edit) apply(body []byte) ([]byte, error) {
	for _, path := range slices.Sorted(maps.Keys(e.Set)) {
		var err error
		if body, err = editAt(body, strings.Split(path, "."), e.Set[path]); err != nil {
			return nil, err
		}
	}
	for _, path := range e.Unset {
		var err error
		if body, err = editAt(body, strings.Split(path, "."), nil); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// editAt puts a value at a path, or takes what is there away if that is nil. Values
// that it passes by stay byte for byte.
func editAt(body json.RawMessage, path []string, value json.RawMessage) (json.RawMessage, error) {
	if len(path) == 0 {
		return value, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(body, &list); err == nil && list != nil {
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i > len(list) || i == len(list) && (value == nil || len(path) > 1) {
			return body, nil
		}
		if i == len(list) {
			list = append(list, nil)
		}
		if list[i], err = editAt(list[i], path[1:], value); err != nil {
			return nil, err
		}
		if list[i] == nil {
			list = slices.Delete(list, i, i+1)
		}
		return EncodeJSON(list)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil || object == nil {
		return body, nil
	}
	old, there := object[path[0]]
	if !there && (value == nil || len(path) > 1) {
		return body, nil
	}
	changed, err := editAt(old, path[1:], value)
	if err != nil {
		return nil, err
	}
	if object[path[0]] = changed; changed == nil {
		delete(object, path[0])
	}
	return EncodeJSON(object)
}
