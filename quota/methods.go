package quota

import (
	_ "embed"
	"net/http"
	"net/url"
	"strings"
)

//go:embed methods.txt
var methodTable string

// A Method is what a request asks of Google, as far as its price depends on it.
type Method struct {
	API    string // "gmail" or "calendar"; "" if neither
	ID     string // of the discovery document; "" if unknown
	Format string // the format parameter
}

// methods recognises API methods by HTTP method and path.
type methods struct {
	root *methodNode
}

// methodNode is one segment of the paths. A literal segment is tried before a
// parameter.
type methodNode struct {
	literal map[string]*methodNode
	param   map[string]*methodNode // by what follows the parameter in its segment, mostly ""
	ids     map[string]string      // by HTTP method
}

var apiMethods = parseMethods(methodTable)

func parseMethods(table string) methods {
	m := methods{root: &methodNode{}}
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] == "#" {
			continue
		}
		m.add(fields[0], fields[1], fields[2])
	}
	return m
}

func (m methods) add(id, verb, path string) {
	node := m.root
	for segment := range strings.SplitSeq(path, "/") {
		children := &node.literal
		if open := strings.IndexByte(segment, '{'); open == 0 {
			_, segment, _ = strings.Cut(segment, "}")
			children = &node.param
		}
		if *children == nil {
			*children = map[string]*methodNode{}
		}
		next := (*children)[segment]
		if next == nil {
			next = &methodNode{}
			(*children)[segment] = next
		}
		node = next
	}
	if node.ids == nil {
		node.ids = map[string]string{}
	}
	node.ids[verb] = id
}

func (n *methodNode) find(verb string, segments []string) string {
	if len(segments) == 0 {
		return n.ids[verb]
	}
	if next := n.literal[segments[0]]; next != nil {
		if id := next.find(verb, segments[1:]); id != "" {
			return id
		}
	}
	for suffix, next := range n.param {
		if value, ok := strings.CutSuffix(segments[0], suffix); ok && value != "" {
			if suffix == "" && hasCustomVerb(n, value) {
				continue
			}
			if id := next.find(verb, segments[1:]); id != "" {
				return id
			}
		}
	}
	return ""
}

// hasCustomVerb reports whether value ends in one of the ":verb" suffixes that
// the node knows.
func hasCustomVerb(n *methodNode, value string) bool {
	for suffix := range n.param {
		if suffix != "" && strings.HasSuffix(value, suffix) {
			return true
		}
	}
	return false
}

// apiRoots are the first segments of each API's paths. What stands before them
// (a proxy's prefix, "upload", "resumable/upload") does not change the price.
var apiRoots = []struct{ api, prefix string }{
	{"gmail", "gmail/v1/"},
	{"calendar", "calendar/v3/"},
}

// Recognise tells which API method a request calls, by the paths of Google's
// discovery documents (Gmail revision 20261106, Calendar revision 20261030).
func Recognise(r *http.Request) Method {
	path := strings.TrimPrefix(r.URL.EscapedPath(), "/")
	for _, root := range apiRoots {
		at := strings.Index("/"+path, "/"+root.prefix)
		if at < 0 {
			continue
		}
		return Method{
			API:    root.api,
			ID:     apiMethods.root.find(r.Method, strings.Split(path[at:], "/")),
			Format: lastValue(r.URL, "format"),
		}
	}
	return Method{}
}

// lastValue is the value of a query parameter, as Google reads it when it is
// given more than once.
func lastValue(u *url.URL, name string) string {
	if !strings.Contains(u.RawQuery, name) {
		return ""
	}
	values := u.Query()[name]
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}
