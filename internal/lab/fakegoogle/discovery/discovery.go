// Package discovery reads Google's own descriptions of its APIs, for tests that
// hold the fake to them.
package discovery

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// A Node is a collection of methods and of collections.
type Node struct {
	Resources map[string]Node
	Methods   map[string]Method
}

// A Method is one method of an API.
type Method struct {
	ID, HTTPMethod, Path string
	MediaUpload          struct {
		Protocols struct{ Simple struct{ Path string } }
	}
}

// Walk calls f for every method.
func (n Node) Walk(f func(Method)) {
	for _, m := range n.Methods {
		f(m)
	}
	for _, child := range n.Resources {
		child.Walk(f)
	}
}

// A Document is the description of an API.
type Document struct {
	Node
	Schemas map[string]Schema
}

// A Schema is the description of a type.
type Schema struct {
	Ref        string `json:"$ref"`
	Type       string
	Format     string
	Items      *Schema
	Properties map[string]Schema
}

// Read returns the description of an API that Google's client ships with: of gmail
// v1, or of calendar v3. Where there is none, it skips the test.
func Read(t *testing.T, api, version string) Document {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "google.golang.org/api").Output()
	if err != nil {
		t.Skipf("the module google.golang.org/api is not to be found: %v", err)
	}
	b, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), api, version, api+"-api.json"))
	if err != nil {
		t.Skipf("google.golang.org/api comes without its discovery document: %v", err)
	}
	var d Document
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

var pathID = regexp.MustCompile(`\{[^}]*\}`)

// Misserved compares where methods are served, as a verb and a path with a * for
// each id, with where Google serves them.
func (d Document) Misserved(served map[string]string) []string {
	var problems []string
	found := 0
	d.Walk(func(m Method) {
		got, ok := served[m.ID]
		if !ok {
			return
		}
		found++
		if want := m.HTTPMethod + " " + pathID.ReplaceAllString(m.Path, "*"); got != want {
			problems = append(problems, fmt.Sprintf("%s is served at %q, and at %q by Google", m.ID, got, want))
		}
	})
	if found != len(served) {
		problems = append(problems, fmt.Sprintf("%d of %d methods served are Google's", found, len(served)))
	}
	return problems
}

// Misfits compares the type of a value with a schema of the document, and returns
// what an answer of that type would have that Google's answers have not.
func (d Document) Misfits(name string, answer any) []string {
	return d.misfits(name, d.Schemas[name], reflect.TypeOf(answer), map[reflect.Type]bool{})
}

// misfits is Misfits for a part of a value. Types in seen are taken as compared:
// parts hold parts.
func (d Document) misfits(at string, s Schema, t reflect.Type, seen map[reflect.Type]bool) []string {
	if s.Ref != "" {
		s = d.Schemas[s.Ref]
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Slice:
		if s.Type != "array" {
			return []string{fmt.Sprintf("%s is %s to Google, an array here", at, s.Type)}
		}
		return d.misfits(at+"[]", *s.Items, t.Elem(), seen)
	case t.Kind() == reflect.Map && s.Type == "object":
		return nil
	case seen[t]:
		return nil
	case t.Kind() == reflect.Struct:
		seen[t] = true
		var problems []string
		for f := range t.Fields() {
			if f.PkgPath != "" && !f.Anonymous {
				continue // not answered
			}
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			property, ok := s.Properties[name]
			if !ok {
				problems = append(problems, fmt.Sprintf("%s has no field %s", at, name))
				continue
			}
			asString := strings.HasSuffix(","+options, ",string")
			if asString != (property.Format == "int64" || property.Format == "uint64") {
				problems = append(problems, fmt.Sprintf("%s.%s has format %q, encoded as a string: %t", at, name, property.Format, asString))
			}
			problems = append(problems, d.misfits(at+"."+name, property, f.Type, seen)...)
		}
		return problems
	}
	kinds := map[string][]reflect.Kind{
		"string":  {reflect.String, reflect.Int64, reflect.Uint64}, // 64-bit numbers travel as strings
		"integer": {reflect.Int},
		"boolean": {reflect.Bool},
	}
	for _, kind := range kinds[s.Type] {
		if t.Kind() == kind {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s is %s to Google, %s here", at, s.Type, t)}
}
