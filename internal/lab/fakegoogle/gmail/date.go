package gmail

import (
	"net/mail"
	"strings"
	"time"
)

// zoneOffsets are the zones that RFC 5322 has names for. By its rule every other
// name, single letters too, gives no offset and stands for UTC.
var zoneOffsets = map[string]string{
	"EDT": "-0400", "EST": "-0500",
	"CDT": "-0500", "CST": "-0600",
	"MDT": "-0600", "MST": "-0700",
	"PDT": "-0700", "PST": "-0800",
}

// parseDate reads a Date header, also one with comments, without seconds, or with
// the name of its zone. The names mean the same wherever the fake runs.
func parseDate(s string) (time.Time, bool) {
	words := strings.Fields(withoutComments(s))
	if len(words) == 0 {
		return time.Time{}, false
	}
	zone := &words[len(words)-1]
	if name := strings.ToUpper(*zone); isLetters(name) {
		if *zone = zoneOffsets[name]; *zone == "" {
			*zone = "+0000"
		}
	}
	t, err := mail.ParseDate(strings.Join(words, " "))
	return t, err == nil
}

func isLetters(s string) bool {
	return strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// withoutComments leaves out what stands in parentheses, which may be nested.
func withoutComments(s string) string {
	var b strings.Builder
	depth := 0
	for _, r := range s {
		switch {
		case r == '(':
			depth++
		case r == ')' && depth > 0:
			depth--
		case depth == 0:
			b.WriteRune(r)
		}
	}
	return b.String()
}
