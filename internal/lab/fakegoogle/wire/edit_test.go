package wire

import (
	"encoding/json"
	"testing"
)

func TestFieldsOfAnAnswerAreSetAndLeftOut(t *testing.T) {
	const answer = `{"a":"x","items":[{"id":1},{"id":2}]}`
	for _, tt := range []struct {
		name string
		edit Edit
		want string
	}{
		{"a field", Edit{Set: map[string]json.RawMessage{"a": json.RawMessage(`[7]`)}}, `{"a":[7],"items":[{"id":1},{"id":2}]}`},
		{"a field of an item", Edit{Set: map[string]json.RawMessage{"items.1.id": json.RawMessage(`"2"`)}}, `{"a":"x","items":[{"id":1},{"id":"2"}]}`},
		{"an item and a new one", Edit{Set: map[string]json.RawMessage{"items.0": json.RawMessage(`null`), "items.2": json.RawMessage(`{}`)}}, `{"a":"x","items":[null,{"id":2},{}]}`},
		{"missing ones", Edit{Unset: []string{"a", "items.1.id", "items.0"}}, `{"items":[{}]}`},
		{"a path to nowhere", Edit{Set: map[string]json.RawMessage{"a.b": json.RawMessage(`1`), "items.x": json.RawMessage(`1`), "c.d": json.RawMessage(`1`)}, Unset: []string{"c"}}, answer},
	} {
		got, err := tt.edit.apply([]byte(answer))
		var compact any
		if err != nil || json.Unmarshal(got, &compact) != nil {
			t.Errorf("%s: %s, %v", tt.name, got, err)
			continue
		}
		if text, _ := json.Marshal(compact); string(text) != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, text, tt.want)
		}
	}
	for _, bad := range []Edit{{Set: map[string]json.RawMessage{"a": json.RawMessage(`{`)}}, {Unset: []string{""}}} {
		if bad.Validate() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
