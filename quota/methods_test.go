package quota_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"headroom/quota"
	"headroom/quota/price"
)

// discovery reads an API's discovery document, which ships with Google's client.
func discovery(t *testing.T, file string) map[string]discoveryMethod {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "google.golang.org/api").Output()
	if err != nil {
		t.Fatalf("find google.golang.org/api: %v", err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), file))
	if err != nil {
		t.Fatal(err)
	}
	var doc discoveryResource
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	found := map[string]discoveryMethod{}
	doc.walk(found)
	return found
}

type discoveryResource struct {
	Methods   map[string]discoveryMethod   `json:"methods"`
	Resources map[string]discoveryResource `json:"resources"`
}

type discoveryMethod struct {
	ID          string `json:"id"`
	HTTPMethod  string `json:"httpMethod"`
	Path        string `json:"path"`
	MediaUpload struct {
		Protocols map[string]struct {
			Path string `json:"path"`
		} `json:"protocols"`
	} `json:"mediaUpload"`
}

func (r discoveryResource) walk(found map[string]discoveryMethod) {
	for _, m := range r.Methods {
		found[m.ID] = m
	}
	for _, sub := range r.Resources {
		sub.walk(found)
	}
}

// TestMethods walks Google's discovery documents: every method is recognised by
// the path that clients use, with ids that need escaping, and by its upload paths.
func TestMethods(t *testing.T) {
	for _, api := range []struct{ file, base string }{
		{"gmail/v1/gmail-api.json", ""},
		{"calendar/v3/calendar-api.json", "calendar/v3/"},
	} {
		found := discovery(t, api.file)
		if len(found) < 30 {
			t.Fatalf("%s: only %d methods", api.file, len(found))
		}
		for id, m := range found {
			paths := []string{"/" + api.base + m.Path, "/proxy/" + api.base + m.Path}
			for _, p := range m.MediaUpload.Protocols {
				paths = append(paths, p.Path)
			}
			for _, path := range paths {
				r := &http.Request{Method: m.HTTPMethod, URL: fill(t, path)}
				if got := quota.Recognise(r); got.ID != id {
					t.Errorf("%s %s: recognised as %q, want %q", r.Method, r.URL, got.ID, id)
				}
			}
			if !strings.Contains(quota.MethodTable, id+" ") {
				t.Errorf("methods.txt lacks %s", id)
			}
		}
	}
}

// fill puts values that need escaping in the place of a path's parameters.
func fill(t *testing.T, path string) *url.URL {
	t.Helper()
	for strings.Contains(path, "{") {
		before, rest, _ := strings.Cut(path, "{")
		_, after, _ := strings.Cut(rest, "}")
		path = before + url.PathEscape("a#b/c@d:e") + after
	}
	u, err := url.Parse("http://127.0.0.1:1" + path + "?alt=json&format=RAW")
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestRecogniseOthers(t *testing.T) {
	for target, want := range map[string]quota.Method{
		"GET /gmail/v1/users/me/messages/1?format=metadata&format=raw": {API: "gmail", ID: "gmail.users.messages.get", Format: "raw"},
		"GET /gmail/v1/users/me/novelties":                             {API: "gmail"},
		"PUT /gmail/v1/users/me/messages/1":                            {API: "gmail"},
		"GET /token":                                                   {},
	} {
		verb, path, _ := strings.Cut(target, " ")
		u, err := url.Parse(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := quota.Recognise(&http.Request{Method: verb, URL: u}); got != want {
			t.Errorf("%s: got %+v, want %+v", target, got, want)
		}
	}
}

// TestListsAreComplete prices every method of the discovery documents.
func TestListsAreComplete(t *testing.T) {
	gmail, calendar := discovery(t, "gmail/v1/gmail-api.json"), discovery(t, "calendar/v3/calendar-api.json")
	for _, name := range price.Names() {
		list, err := price.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		methods := gmail
		if list.API == "calendar" {
			methods = calendar
		}
		for id := range methods {
			if _, known := list.Cost(id, ""); !known {
				t.Errorf("%s has no price for %s", name, id)
			}
		}
		if len(list.Costs) != len(methods) {
			t.Errorf("%s prices %d methods, the API has %d", name, len(list.Costs), len(methods))
		}
	}
}
