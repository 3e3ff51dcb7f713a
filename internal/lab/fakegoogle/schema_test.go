package fakegoogle

import (
	"fmt"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// Every answer must have only fields that Google's own schema has, with types
// that its clients can read.
func TestAnswersFitGooglesSchema(t *testing.T) {
	d := readDiscovery(t)
	for name, answer := range map[string]any{
		"Profile": profile{}, "ListMessagesResponse": messageList{}, "Message": messageAnswer{},
		"ListLabelsResponse": labelList{}, "Label": label{}, "ListHistoryResponse": historyList{},
		"ListThreadsResponse": threadList{}, "Thread": threadAnswer{}, "MessagePartBody": partBody{}, "WatchResponse": watchAnswer{},
		"Message ": messageRef{},
	} {
		name = strings.TrimSpace(name)
		for _, problem := range misfits(d, name, d.Schemas[name], reflect.TypeOf(answer), map[reflect.Type]bool{}) {
			t.Error(problem)
		}
	}
}

// The same holds for Calendar.
func TestCalendarsAnswersFitGooglesSchema(t *testing.T) {
	d := readDiscoveryOf(t, "calendar", "v3")
	for name, answer := range map[string]any{
		"CalendarList": calendarList{}, "CalendarListEntry": calendarEntry{}, "Calendar": calendarResource{},
		"Events": eventList{}, "Event": Event{}, "Channel": channelResource{},
		"FreeBusyRequest": freeBusyRequest{}, "FreeBusyResponse": freeBusyAnswer{}, "FreeBusyCalendar": freeBusyCalendar{},
		"Colors": colors{}, "ColorDefinition": color{}, "Settings": settingList{}, "Acl": aclList{},
	} {
		for _, problem := range misfits(d, name, d.Schemas[name], reflect.TypeOf(answer), map[reflect.Type]bool{}) {
			t.Error(problem)
		}
	}
}

// What is served must be served where Google's own clients look for it, and have a
// price of its own.
func TestMethodsAreServedWhereGoogleServesThem(t *testing.T) {
	served := map[string]string{} // verb and path, with a * for each id, by method
	for pattern, method := range calendarRoutes {
		served[method] = pattern
	}
	for verb, paths := range map[string]map[string]string{"GET ": methods, "POST ": posted} {
		for path, method := range paths {
			served[method] = verb + "gmail/v1/users/*/" + strings.ReplaceAll(path, "ID", "*")
		}
	}
	calendarPrices, err := readPrices(calendarPricesText)
	if err != nil {
		t.Fatal(err)
	}
	gmailPrices, err := parsePrices()
	if err != nil {
		t.Fatal(err)
	}
	ids := regexp.MustCompile(`\{[^}]*\}`)
	found := 0
	for _, api := range []discovery{readDiscovery(t), readDiscoveryOf(t, "calendar", "v3")} {
		api.walk(func(m discoveryMethod) {
			got, ok := served[m.ID]
			if !ok {
				return
			}
			found++
			if want := m.HTTPMethod + " " + ids.ReplaceAllString(m.Path, "*"); got != want {
				t.Errorf("%s is served at %q, and at %q by Google", m.ID, got, want)
			}
			_, priced := calendarPrices[CalendarPrices].costs[m.ID]
			_, pricedMail := gmailPrices[DefaultPrices].costs[strings.TrimPrefix(m.ID, methodPrefix)]
			if !priced && !pricedMail {
				t.Errorf("%s has no price", m.ID)
			}
			if upload := m.MediaUpload.Protocols.Simple.Path; upload != "" {
				r := httptest.NewRequest(m.HTTPMethod, strings.ReplaceAll(upload, "{userId}", "me"), nil)
				if op, ok := route(r); !ok || op.method != m.ID || !op.upload {
					t.Errorf("an upload to %s is %+v, %t", upload, op, ok)
				}
			}
		})
	}
	if found != len(served) {
		t.Errorf("%d of %d methods served are Google's", found, len(served))
	}
}

// misfits compares a Go type with a schema. Types in seen are taken as compared:
// parts hold parts.
func misfits(d discovery, at string, s schema, t reflect.Type, seen map[reflect.Type]bool) []string {
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
		return misfits(d, at+"[]", *s.Items, t.Elem(), seen)
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
			problems = append(problems, misfits(d, at+"."+name, property, f.Type, seen)...)
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
