package gmail

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// A searcher is what the meaning of a query depends on besides its text.
type searcher struct {
	zone         *time.Location // of dates
	looseSeconds bool           // see [Profile]
	now          time.Time
}

// operators are the names that mean something before ":".
var operators = []string{
	"after", "newer", "before", "older", "newer_than", "older_than",
	"label", "in", "is", "category", "has", "filename",
	"from", "to", "cc", "bcc", "deliveredto", "list", "subject", "rfc822msgid",
	"larger", "size", "smaller",
}

func isOperator(name string) bool { return slices.Contains(operators, name) }

// term returns what NAME:VALUE asks for; false where the value cannot be read.
func (s searcher) term(name, value string) (matcher, bool) {
	if value == "" {
		return nil, false
	}
	switch name {
	case "after", "newer":
		t, ok := s.moment(value)
		return func(m *message) bool { return m.internalDate >= t.UnixMilli() }, ok
	case "before", "older":
		t, ok := s.moment(value)
		return func(m *message) bool { return m.internalDate < t.UnixMilli() }, ok
	case "newer_than", "older_than":
		t, ok := s.ago(value)
		newer := name == "newer_than"
		return func(m *message) bool { return (m.internalDate >= t.UnixMilli()) == newer }, ok
	case "label":
		return hasLabel(value), true
	case "in":
		return inPlace(value), true
	case "is":
		return isOf(value)
	case "category":
		return hasLabel("CATEGORY_" + categoryLabel(value)), true
	case "has":
		return hasThing(value)
	case "filename":
		return hasFile(value), true
	case "larger", "size", "smaller":
		n, ok := sizeOf(value)
		smaller := name == "smaller"
		return func(m *message) bool { return (m.content.size() < n) == smaller }, ok
	case "rfc822msgid":
		id := strings.Trim(value, "<>")
		return func(m *message) bool { return strings.Trim(m.head.get("Message-ID"), "<> ") == id }, true
	case "deliveredto":
		return headerHas("Delivered-To", value), true
	case "list":
		return headerHas("List-ID", value), true
	case "to": // it finds those who get a copy, too
		to, cc, bcc := headerHas("To", value), headerHas("Cc", value), headerHas("Bcc", value)
		return func(m *message) bool { return to(m) || cc(m) || bcc(m) }, true
	}
	return headerHas(name, value), true // from, cc, bcc, subject
}

// moment reads a bound of time: seconds since 1970, or a day, which begins at
// midnight in the zone. A day is thereby hours off for most people, as it is at
// Google; seconds are exact, unless they are to be loose.
func (s searcher) moment(value string) (time.Time, bool) {
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		t := time.Unix(seconds, 0).In(s.zone)
		if s.looseSeconds {
			t = time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, s.zone)
		}
		return t, true
	}
	for _, layout := range []string{"2006/1/2", "2006-1-2", "1/2/2006"} {
		if t, err := time.ParseInLocation(layout, value, s.zone); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// ago reads a length of time, as 2d, 3m or 1y, back from now.
func (s searcher) ago(value string) (time.Time, bool) {
	n, err := strconv.Atoi(strings.TrimRight(value, "dmy"))
	if err != nil || n < 0 {
		return time.Time{}, false
	}
	switch value[len(value)-1] {
	case 'd':
		return s.now.AddDate(0, 0, -n), true
	case 'm':
		return s.now.AddDate(0, -n, 0), true
	case 'y':
		return s.now.AddDate(-n, 0, 0), true
	}
	return time.Time{}, false
}

// sizeOf reads bytes, as 5000, 500K or 10M.
func sizeOf(value string) (int, bool) {
	value = strings.ToLower(strings.TrimSuffix(strings.ToLower(value), "b"))
	unit := 1
	if number, ok := strings.CutSuffix(value, "k"); ok {
		value, unit = number, 1<<10
	} else if number, ok := strings.CutSuffix(value, "m"); ok {
		value, unit = number, 1<<20
	}
	n, err := strconv.ParseInt(value, 10, 40)
	return int(n) * unit, err == nil && n >= 0
}

func inPlace(place string) matcher {
	switch strings.ToLower(place) {
	case "anywhere":
		return func(*message) bool { return true }
	case "chats":
		return hasLabel("CHAT")
	case "drafts":
		return hasLabel("DRAFT")
	}
	return hasLabel(place)
}

func isOf(state string) (matcher, bool) {
	state = strings.ToLower(state)
	if state == "read" {
		unread := hasLabel("UNREAD")
		return func(m *message) bool { return !unread(m) }, true
	}
	known := slices.Contains([]string{"unread", "starred", "important", "chat", "draft", "sent", "inbox", "spam", "trash"}, state)
	return hasLabel(state), known
}

// categoryLabel is the label of a category: primary mail is what Gmail once
// called personal.
func categoryLabel(name string) string {
	if strings.EqualFold(name, "primary") {
		return "PERSONAL"
	}
	return name
}

func hasThing(thing string) (matcher, bool) {
	switch strings.ToLower(thing) {
	case "attachment":
		return func(m *message) bool { return len(files(m.content.payload(""))) > 0 }, true
	case "userlabels":
		return hasUserLabel, true
	case "nouserlabels":
		return func(m *message) bool { return !hasUserLabel(m) }, true
	}
	return nil, false
}

func hasUserLabel(m *message) bool {
	return slices.ContainsFunc(m.labels, func(l string) bool { return !slices.Contains(systemLabels, l) })
}

// hasFile looks for attachments by name, or by the end of it.
func hasFile(name string) matcher {
	name = strings.ToLower(name)
	return func(m *message) bool {
		return slices.ContainsFunc(files(m.content.payload("")), func(file string) bool {
			return strings.Contains(strings.ToLower(file), name)
		})
	}
}

// files returns the names of all parts that have one.
func files(p *payload) []string {
	var names []string
	if *p.Filename != "" {
		names = append(names, *p.Filename)
	}
	for _, child := range p.Parts {
		names = append(names, files(child)...)
	}
	return names
}

// hasLabel compares as the search box does: in any case, with a dash for what
// cannot stand in a word.
func hasLabel(name string) matcher {
	plain := func(s string) string {
		return strings.NewReplacer(" ", "-", "/", "-").Replace(strings.ToLower(s))
	}
	want := plain(name)
	return func(m *message) bool {
		return slices.ContainsFunc(m.labels, func(l string) bool { return plain(l) == want })
	}
}

func headerHas(name, value string) matcher {
	value = strings.ToLower(value)
	return func(m *message) bool { return strings.Contains(strings.ToLower(m.head.decoded(name)), value) }
}

// hasText looks for whole words in subject, addresses and text.
func hasText(phrase string) matcher {
	want := " " + strings.Join(searchWords(phrase), " ") + " "
	return func(m *message) bool {
		head := strings.Join([]string{m.head.decoded("Subject"), m.head.decoded("From"), m.head.decoded("To"), m.head.decoded("Cc")}, " ")
		found := func(text string) bool {
			return strings.Contains(" "+strings.Join(searchWords(text), " ")+" ", want)
		}
		return found(head) || found(firstText(fullPayload("", m.content.short())))
	}
}

func searchWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}
