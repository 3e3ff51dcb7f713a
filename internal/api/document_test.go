package api_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"

	"headroom/internal/api"
)

// TestAPIDescribesItself holds the description to be complete, and its examples to
// its own types.
func TestAPIDescribesItself(t *testing.T) {
	s := serve(t, nil)
	a := s.send("GET", "/openapi.yaml", nil, nil)
	if a.status != 200 || !strings.Contains(a.body, "openapi: 3.1.0") {
		t.Errorf("openapi.yaml = %d %.100s", a.status, a.body)
	}
	a = s.send("GET", "/openapi.json", nil, nil)
	var d struct {
		OpenAPI    string
		Paths      map[string]map[string]operation
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal([]byte(a.body), &d); err != nil || !strings.HasPrefix(d.OpenAPI, "3.1.") {
		t.Fatalf("openapi.json = %v, version %q", err, d.OpenAPI)
	}
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	for name, text := range d.Components.Schemas {
		registry.Map()[name] = schemaOf(t, text)
	}
	ids := map[string]bool{}
	for path, item := range d.Paths {
		for method, op := range item {
			name := method + " " + path
			if op.OperationID == "" || ids[op.OperationID] || op.Summary == "" || op.Description == "" || len(op.Tags) != 1 {
				t.Errorf("%s lacks an id of its own, a summary, a description or a tag", name)
			}
			ids[op.OperationID] = true
			problems := 0
			for status, r := range op.Responses {
				if status >= "400" {
					problems++
					if _, ok := r.Content["application/problem+json"]; !ok {
						t.Errorf("%s: %s is no problem", name, status)
					}
					continue
				}
				r.check(t, registry, name+" "+status)
			}
			if problems < 4 {
				t.Errorf("%s names %d errors", name, problems)
			}
			if op.RequestBody != nil {
				op.RequestBody.check(t, registry, name+" request")
			}
		}
	}
	if len(ids) != 32 {
		t.Errorf("%d operations are described, want 32", len(ids))
	}
}

type operation struct {
	OperationID, Summary, Description string
	Tags                              []string
	RequestBody                       *content
	Responses                         map[string]content
}

type content struct {
	Content map[string]struct {
		Schema  json.RawMessage
		Example any
	}
}

// check holds the example to the schema.
func (c content) check(t *testing.T, r huma.Registry, name string) {
	t.Helper()
	if len(c.Content) == 0 {
		t.Errorf("%s has no content", name)
	}
	for kind, media := range c.Content {
		if media.Example == nil {
			t.Errorf("%s, %s has no example", name, kind)
			continue
		}
		if kind != "application/json" {
			continue
		}
		result := &huma.ValidateResult{}
		huma.Validate(r, schemaOf(t, media.Schema), huma.NewPathBuffer([]byte{}, 0), huma.ModeReadFromServer, media.Example, result)
		for _, err := range result.Errors {
			t.Errorf("%s: the example does not fit: %v", name, err)
		}
	}
}

// schemaOf reads a schema of the description. A type may be one or several, of
// which null is one.
func schemaOf(t *testing.T, text json.RawMessage) *huma.Schema {
	t.Helper()
	var raw any
	if err := json.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	return schemaFrom(raw)
}

func schemaFrom(raw any) *huma.Schema {
	m, ok := raw.(map[string]any)
	if !ok {
		return nil
	}
	s := &huma.Schema{Items: schemaFrom(m["items"])}
	s.Ref, _ = m["$ref"].(string)
	switch kind := m["type"].(type) {
	case string:
		s.Type = kind
	case []any:
		s.Type, s.Nullable = kind[0].(string), true
	}
	s.Format, _ = m["format"].(string)
	if properties, ok := m["properties"].(map[string]any); ok {
		s.Properties = map[string]*huma.Schema{}
		for name, p := range properties {
			s.Properties[name] = schemaFrom(p)
		}
	}
	if required, ok := m["required"].([]any); ok {
		for _, name := range required {
			s.Required = append(s.Required, name.(string))
		}
	}
	switch more := m["additionalProperties"].(type) {
	case bool:
		s.AdditionalProperties = more
	case map[string]any:
		s.AdditionalProperties = schemaFrom(more)
	}
	s.PrecomputeMessages()
	return s
}

func TestTheAPIsOperationsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z]+ /\\S+)` \\|").FindAllSubmatch(text, -1) {
		documented[string(m[1])] = true
	}
	s := serve(t, nil)
	d := ask[struct{ Paths map[string]map[string]any }](s, 200, "GET", "/openapi.json", nil)
	for path, item := range d.Paths {
		for method := range item {
			name := strings.ToUpper(method) + " " + path
			if !documented[name] {
				t.Errorf("docs/api.md lacks %s", name)
			}
			delete(documented, name)
		}
	}
	for name := range documented {
		t.Errorf("docs/api.md has %s, which does not exist", name)
	}
}

// TestDescribedTypesHaveTheFieldsOfTheirOwn: a type of the document stands for another,
// whose JSON must have the same names.
func TestDescribedTypesHaveTheFieldsOfTheirOwn(t *testing.T) {
	for own, stand := range api.Described {
		plain := huma.NewMapRegistry("#/", huma.DefaultSchemaNamer)
		want := slices.Sorted(maps.Keys(plain.Schema(own, false, "").Properties))
		described := huma.NewMapRegistry("#/", huma.DefaultSchemaNamer)
		got := slices.Sorted(maps.Keys(described.Schema(stand, false, "").Properties))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("fields of %s (-) and %s (+):\n%s", own, stand, diff)
		}
	}
}
