package lenient_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headroom/internal/lenient"
)

type moment struct {
	Date string `json:"date"`
}

type thing struct {
	ID     string            `json:"id"`
	Number uint64            `json:"number,string"`
	Size   int64             `json:"size"`
	Date   *int64            `json:"date,string"`
	Self   bool              `json:"self"`
	Labels []string          `json:"labels"`
	Start  *moment           `json:"start"`
	Parts  []*thing          `json:"parts"`
	Map    map[string]string `json:"map"`
	Any    any               `json:"any"`
	Hidden string            `json:"-"`
}

func TestWhatCanBeReadIsRead(t *testing.T) {
	date := int64(1764547200000)
	for _, tt := range []struct {
		name, text string
		want       thing
		problems   string
	}{
		{"the usual kinds", `{"id":"a","number":"43","size":5,"self":true,"labels":["x"],"start":{"date":"d"},"map":{"k":"v"}}`,
			thing{ID: "a", Number: 43, Size: 5, Self: true, Labels: []string{"x"}, Start: &moment{"d"}, Map: map[string]string{"k": "v"}}, ""},
		{"numbers for text and text for numbers", `{"id":12,"number":43,"size":"5","date":1764547200000,"self":"true"}`,
			thing{ID: "12", Number: 43, Size: 5, Date: &date, Self: true}, ""},
		{"numbers with a point or an exponent", `{"number":4.3e3,"size":"12.9","date":"1764547200000.0"}`,
			thing{Number: 4300, Size: 12, Date: &date}, ""},
		{"truth in other words", `{"id":true,"self":1}`, thing{ID: "true", Self: true}, ""},
		{"one value for a list", `{"labels":"x","parts":{"id":7}}`, thing{Labels: []string{"x"}, Parts: []*thing{{ID: "7"}}}, ""},
		{"text for an object", `{"start":"2026-12-03"}`, thing{Start: &moment{"2026-12-03"}}, ""},
		{"null and empty text", `{"id":null,"number":"","size":"","labels":null,"start":null}`, thing{}, ""},
		{"an object for text", `{"id":{},"size":5}`, thing{Size: 5}, "field id cannot be read: it is an object"},
		{"words for a number", `{"id":"a","size":"big","number":-1,"self":"perhaps"}`, thing{ID: "a"},
			"field number cannot be read: it is a number; field size cannot be read: it is text; field self cannot be read: it is text"},
		{"a number beyond all", `{"id":"a","size":1e400,"number":99999999999999999999999}`, thing{ID: "a"},
			"field number cannot be read: it is a number; field size cannot be read: it is a number"},
		{"odd ones in a list", `{"labels":["x",7,[],"y"],"parts":[null,"p",{"id":"q","self":[]}]}`,
			thing{Labels: []string{"x", "7", "y"}, Parts: []*thing{nil, {ID: "q"}}},
			"field labels[2] cannot be read: it is a list; field parts[1] cannot be read: it is text; field parts[2].self cannot be read: it is a list"},
		{"a list for an object", `{"start":[1],"map":5}`, thing{}, "field start cannot be read: it is a list; field map cannot be read: it is a number"},
		{"anything for anything", `{"any":[1],"size":"1"}`, thing{Any: []any{json.Number("1")}, Size: 1}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got thing
			problems, err := lenient.Unmarshal([]byte(tt.text), &got, lenient.Text(func(s string) moment { return moment{s} }))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
			var texts []string
			for _, p := range problems {
				texts = append(texts, p.String())
			}
			if got := strings.Join(texts, "; "); got != tt.problems {
				t.Errorf("problems %q, want %q", got, tt.problems)
			}
		})
	}
}

func TestWhatIsNoObjectIsAnError(t *testing.T) {
	for _, text := range []string{`null`, ` null `, `[]`, `5`, `"x"`, `{`, ``, `{"id":5} {}`} {
		var got thing
		if problems, err := lenient.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%q became %+v with %v, want an error", text, got, problems)
		}
	}
	if _, err := lenient.Unmarshal([]byte("null"), new(thing)); !errors.Is(err, lenient.ErrNull) {
		t.Errorf("null: %v", err)
	}
}

func TestProblemsAreFoundByTheirField(t *testing.T) {
	all := lenient.Problems{{Field: "ideal", Found: "a list"}, {Field: "id.x[0]", Found: "text"}}
	if p, found := all.Of("id"); !found || p.Field != "id.x[0]" {
		t.Errorf("got %v, %v", p, found)
	}
	if _, found := all.Of("x"); found {
		t.Error("a field of a field was found")
	}
}

// FuzzNothingPanicsAndUsualJSONIsReadAsUsual: whatever Go's decoder takes comes out
// as it has it.
func FuzzNothingPanicsAndUsualJSONIsReadAsUsual(f *testing.F) {
	for _, seed := range []string{`{"id":"a","number":"1","parts":[{"self":true}]}`, `{"id":[[{}]],"parts":{"parts":"x"},"map":{"a":1}}`, `{"date":"x","size":1e99,"any":{}}`, `[null]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var strict, got thing
		usual := json.Unmarshal([]byte(text), &strict) == nil
		problems, err := lenient.Unmarshal([]byte(text), &got)
		if usual && !errors.Is(err, lenient.ErrNull) && (err != nil || len(problems) > 0 || !cmp.Equal(strict, got)) {
			t.Fatalf("%q: %v, %v, %s", text, problems, err, cmp.Diff(strict, got))
		}
		if err == nil && !json.Valid([]byte(text)) {
			t.Fatalf("%q was read and is no JSON", text)
		}
	})
}
