package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Keys lists the dotted key of every setting, in the order of the types. Names that the
// user chooses appear as <name> (of a project), <list> (of a price list), <method> (of
// an API), <class>, <schedule>, <tenant> and <account>.
func Keys() []string {
	var keys []string
	walkKeys(reflect.TypeFor[Config](), "", func(key string, _ reflect.Type) { keys = append(keys, key) })
	return keys
}

// tenantType is the type of the settings below a tenant's name.
var tenantType = reflect.TypeFor[Tenant]()

// dotted lists the types of settings below names that may contain dots. One part of a
// key follows such a name.
var dotted = map[reflect.Type]bool{tenantType: true, reflect.TypeFor[TenantSchedule](): true, reflect.TypeFor[AccountSchedule](): true}

// projectType is the type of the settings below a project's name.
var projectType = reflect.TypeFor[Project]()

// splitProject joins the parts of a key that form the name of a project, because such
// names may contain dots (example.com:mail). It takes the longest name that exists
// already, otherwise the shortest one that is followed by a setting of a project.
func splitProject(projects reflect.Value, key []string) []string {
	named := func(n int) []string { return append([]string{strings.Join(key[:n], ".")}, key[n:]...) }
	for n := len(key) - 1; n > 0; n-- {
		if split := named(n); projects.MapIndex(reflect.ValueOf(split[0])).IsValid() {
			return split
		}
	}
	for n := 1; n < len(key); n++ {
		if field(reflect.New(projectType).Elem(), key[n]).IsValid() {
			return named(n)
		}
	}
	return key
}

// costType is one setting, although it is a struct.
var costType = reflect.TypeFor[Cost]()

func walkKeys(t reflect.Type, path string, visit func(string, reflect.Type)) {
	switch {
	case t.Kind() == reflect.Struct && t != costType:
		for i := range t.NumField() {
			f := t.Field(i)
			walkKeys(f.Type, joinKey(path, f.Tag.Get("yaml")), visit)
		}
	case t.Kind() == reflect.Map:
		name := "<list>"
		switch t.Elem() {
		case reflect.TypeFor[Project]():
			name = "<name>"
		case costType:
			name = "<method>"
		case reflect.TypeFor[Class]():
			name = "<class>"
		case tenantType, reflect.TypeFor[TenantSchedule]():
			name = "<tenant>"
		case reflect.TypeFor[AccountSchedule]():
			name = "<account>"
		case reflect.TypeFor[Schedule]():
			name = "<schedule>"
		}
		walkKeys(t.Elem(), joinKey(path, name), visit)
	default:
		visit(path, t)
	}
}

// set sets the setting at key, relative to v, to the value of a text in YAML.
func set(v reflect.Value, key []string, text string) error {
	switch {
	case v.Type() == costType && len(key) == 0:
		return setLeaf(v, text)
	case v.Kind() == reflect.Struct && len(key) > 0:
		if f := field(v, key[0]); f.IsValid() {
			return set(f, key[1:], text)
		}
		return errUnknownKey
	case v.Kind() == reflect.Map && len(key) > 0:
		if v.Type().Elem() == costType {
			key = []string{strings.Join(key, ".")} // the dots belong to the method
		}
		if v.Type().Elem() == projectType {
			key = splitProject(v, key)
		}
		if last := len(key) - 1; dotted[v.Type().Elem()] && last > 0 {
			key = []string{strings.Join(key[:last], "."), key[last]}
		}
		elem := reflect.New(v.Type().Elem()).Elem()
		if old := v.MapIndex(reflect.ValueOf(key[0])); old.IsValid() {
			elem.Set(old)
		}
		if err := set(elem, key[1:], text); err != nil {
			return err
		}
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		v.SetMapIndex(reflect.ValueOf(key[0]), elem)
		return nil
	case len(key) > 0 || v.Kind() == reflect.Struct || v.Kind() == reflect.Map:
		return errUnknownKey
	}
	return setLeaf(v, text)
}

// setLeaf reads text as the file does a value.
func setLeaf(v reflect.Value, text string) error {
	if v.Kind() != reflect.String && strings.TrimSpace(text) == "" {
		return errors.New("must not be empty")
	}
	node := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	switch v.Kind() {
	case reflect.String:
		node.Tag = "!!str"
	case reflect.Struct: // a Cost
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) != 1 {
			return fmt.Errorf("must be a number of units or {format: units}, not %q", text)
		}
		node = doc.Content[0]
	case reflect.Slice:
		node = &yaml.Node{Kind: yaml.SequenceNode}
		for item := range strings.SplitSeq(text, ",") {
			node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: strings.TrimSpace(item)})
		}
	}
	d := decoder{lines: map[string]int{}}
	d.node(node, v, "the value")
	if len(d.problems) > 0 {
		return errors.New(d.problems[0].what)
	}
	return nil
}

var errUnknownKey = errors.New("is no setting that Headroom knows")

// applySet applies a KEY=VALUE of the command line.
func applySet(cfg *Config, s string, from *Sources) error {
	key, text, ok := strings.Cut(s, "=")
	if !ok {
		return fmt.Errorf("--set %s: must be of the form key=value", s)
	}
	if odd := oddText(key); odd != "" {
		return fmt.Errorf("--set %s: the name %s", key, odd)
	}
	if odd := oddText(text); odd != "" {
		return fmt.Errorf("--set %s: the value %s", key, odd)
	}
	err := set(reflect.ValueOf(cfg).Elem(), strings.Split(key, "."), text)
	if errors.Is(err, errUnknownKey) {
		return fmt.Errorf("--set %s: %w%s", key, err, meant(key, Keys()))
	}
	if err != nil {
		return fmt.Errorf("--set %s: %w", key, err)
	}
	from.at[key] = fromSet
	return nil
}

// EnvName returns the environment variable of a key: HEADROOM_ and the key in capitals,
// with underscores for dots. Settings of projects have none.
func EnvName(key string) string {
	return "HEADROOM_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// serviceLink matches the variables, with their values, that Kubernetes sets in every
// container for a service whose name begins with headroom. A misspelt setting of ours
// has another value.
var serviceLink = regexp.MustCompile(`_SERVICE_HOST=[0-9a-fA-F.:]+$|_SERVICE_PORT(_[A-Z0-9_]+)?=\d+$|` +
	`_PORT(_\d+_(TCP|UDP|SCTP))?=(tcp|udp|sctp)://[^/]+$|` +
	`_PORT_\d+_(TCP|UDP|SCTP)_(PROTO=(tcp|udp|sctp)|PORT=\d+|ADDR=[0-9a-fA-F.:]+)$`)

// noSettings lists our variables that are not settings.
var noSettings = map[string]bool{
	"HEADROOM_CONFIG":   true, // names the settings file
	"HEADROOM_SETTINGS": true, // the same, for docker-compose.yml
	"HEADROOM_TESTDATA": true, // these are for the project's own tests
	"HEADROOM_BIN":      true,
	"HEADROOM_JS_DIR":   true,
}

// applyEnviron applies the environment. An unknown variable with our prefix is a
// problem, like an unknown key in the file.
func applyEnviron(cfg *Config, environ []string, from *Sources) []error {
	keys := map[string]string{}
	for _, key := range Keys() {
		if !strings.Contains(key, "<") {
			keys[EnvName(key)] = key
		}
	}
	var problems []error
	for _, entry := range environ {
		name, text, _ := strings.Cut(entry, "=")
		key, known := keys[name]
		switch {
		case !strings.HasPrefix(name, "HEADROOM_") || noSettings[name] || serviceLink.MatchString(entry) && !known:
		case known && oddText(text) != "":
			problems = append(problems, fmt.Errorf("%s: %s: the value %s", name, key, oddText(text)))
		case known:
			if err := set(reflect.ValueOf(cfg).Elem(), strings.Split(key, "."), text); err != nil {
				problems = append(problems, fmt.Errorf("%s: %s: %w", name, key, err))
				continue
			}
			from.at[key] = name
		default:
			problems = append(problems, fmt.Errorf("%s: %w%s", name, errUnknownKey, meant(name, slices.Sorted(maps.Keys(keys)))))
		}
	}
	return problems
}
