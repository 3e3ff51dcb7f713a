package fakegoogle

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// A query is a parsed q: terms that must all hold.
type query struct {
	terms []term
	// reachesSpamTrash is set when the query itself asks for spam or trash, which
	// a listing leaves out otherwise.
	reachesSpamTrash bool
}

type term struct {
	negated bool
	holds   func(*message) bool
}

func (q query) matches(msg *message) bool {
	for _, t := range q.terms {
		if t.holds(msg) == t.negated {
			return false
		}
	}
	return true
}

// parseQuery reads the part of Gmail's search syntax that the fake knows: words
// and "phrases", after: before: newer: older: (days or seconds since 1970),
// label: in: is: from: to: subject: rfc822msgid: larger: smaller:, each negated
// by "-". What Gmail has beyond that (OR, braces, other operators) is refused
// with 400, so that no client believes itself served.
func parseQuery(text string) (query, *apiError) {
	var q query
	for _, token := range queryTokens(text) {
		word, negated := strings.CutPrefix(token, "-")
		if word == "" {
			continue
		}
		operator, value, isOperator := strings.Cut(word, ":")
		if strings.HasPrefix(word, `"`) || !isOperator {
			if word == "OR" || word == "|" || strings.ContainsAny(word, "(){}") && !strings.HasPrefix(word, `"`) {
				return query{}, unsupported(word)
			}
			q.terms = append(q.terms, term{negated, hasText(unquote(word))})
			continue
		}
		operator, value = strings.ToLower(operator), unquote(value)
		holds, ok := operatorTerm(operator, value)
		if !ok {
			return query{}, unsupported(word)
		}
		q.terms = append(q.terms, term{negated, holds})
		if place := strings.ToLower(value); !negated && (operator == "in" || operator == "label") {
			q.reachesSpamTrash = q.reachesSpamTrash || place == "spam" || place == "trash" || place == "anywhere"
		}
	}
	return q, nil
}

func unsupported(word string) *apiError {
	return badRequest("The fake does not know the search term " + strconv.Quote(word))
}

// queryTokens splits at spaces outside quotes.
func queryTokens(text string) []string {
	quoted := false
	return strings.FieldsFunc(text, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return !quoted && unicode.IsSpace(r)
	})
}

func unquote(s string) string { return strings.ReplaceAll(s, `"`, "") }

func operatorTerm(operator, value string) (func(*message) bool, bool) {
	switch operator {
	case "after", "newer":
		t, ok := queryTime(value)
		return func(m *message) bool { return m.internalDate >= t.UnixMilli() }, ok
	case "before", "older":
		t, ok := queryTime(value)
		return func(m *message) bool { return m.internalDate < t.UnixMilli() }, ok
	case "label":
		return hasLabel(value), value != ""
	case "in":
		if strings.EqualFold(value, "anywhere") {
			return func(*message) bool { return true }, true
		}
		return hasLabel(singular(value)), value != ""
	case "is":
		if strings.EqualFold(value, "read") {
			unread := hasLabel("UNREAD")
			return func(m *message) bool { return !unread(m) }, true
		}
		known := slices.Contains([]string{"unread", "starred", "important"}, strings.ToLower(value))
		return hasLabel(value), known
	case "from", "to", "subject":
		return headerHas(operator, value), value != ""
	case "rfc822msgid":
		id := strings.Trim(value, "<>")
		return func(m *message) bool { return strings.Trim(m.head.get("Message-ID"), "<> ") == id }, id != ""
	case "larger", "size", "smaller":
		n, err := strconv.Atoi(value)
		smaller := operator == "smaller"
		return func(m *message) bool { return (len(m.raw) < n) == smaller }, err == nil
	}
	return nil, false
}

// queryTime reads a bound of time: seconds since 1970, or a day, which begins at
// midnight in PST whatever the season. A day is thereby hours off for most
// people, as it is at Google; seconds are exact.
func queryTime(value string) (time.Time, bool) {
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		return time.Unix(seconds, 0), true
	}
	pst := time.FixedZone("PST", -8*60*60)
	for _, layout := range []string{"2006/1/2", "2006-1-2"} {
		if t, err := time.ParseInLocation(layout, value, pst); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// singular maps the plural places of in: to their labels.
func singular(place string) string {
	switch strings.ToLower(place) {
	case "chats":
		return "CHAT"
	case "drafts":
		return "DRAFT"
	}
	return place
}

// hasLabel compares as the search box does: in any case, with a dash for what
// cannot stand in a word.
func hasLabel(name string) func(*message) bool {
	plain := func(s string) string {
		return strings.NewReplacer(" ", "-", "/", "-").Replace(strings.ToLower(s))
	}
	want := plain(name)
	return func(m *message) bool {
		return slices.ContainsFunc(m.labels, func(l string) bool { return plain(l) == want })
	}
}

func headerHas(name, value string) func(*message) bool {
	value = strings.ToLower(value)
	return func(m *message) bool { return strings.Contains(strings.ToLower(m.head.decoded(name)), value) }
}

// hasText looks for whole words in subject, addresses and text.
func hasText(phrase string) func(*message) bool {
	want := " " + strings.Join(searchWords(phrase), " ") + " "
	return func(m *message) bool {
		head := strings.Join([]string{m.head.decoded("Subject"), m.head.decoded("From"), m.head.decoded("To"), m.head.decoded("Cc")}, " ")
		found := func(text string) bool {
			return strings.Contains(" "+strings.Join(searchWords(text), " ")+" ", want)
		}
		return found(head) || found(firstText(fullPayload("", m.raw)))
	}
}

func searchWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}
