package jobs

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxAddress is the longest e-mail address that mail can be sent to, in bytes
// (RFC 5321).
const maxAddress = 254

// ParseAddress checks an account's address and returns it as it is stored, see
// [FoldAddress]. It refuses what no Google user can have, so that it fits into
// ids, keys and a line of a log; the error says why. Whether there is such a user
// only Google knows.
func ParseAddress(text string) (string, error) {
	local, domain, at := strings.Cut(text, "@")
	var rule string
	switch {
	case len(text) > maxAddress:
		return "", fmt.Errorf("an e-mail address of %d characters is too long; the longest has %d", len(text), maxAddress)
	case !at || local == "" || domain == "" || strings.Contains(domain, "@"):
		rule = "it needs exactly one @ with something on both sides, such as ann@example.com"
	case !utf8.ValidString(text) || strings.ContainsFunc(text, hidden):
		rule = "it holds a space or a character that cannot be seen"
	case strings.ContainsAny(text, `"(),:;<>[\]`):
		rule = "it is more than the bare address; leave names, brackets and lists away"
	default:
		return FoldAddress(text), nil
	}
	return "", fmt.Errorf("%q is not an e-mail address: %s", text, rule)
}

func hidden(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }

// FoldAddress is the form in which addresses are compared and stored: A to Z in
// lower case, and nothing else touched. Other letters are not folded, since their
// lower case may be another person's address: that of the Kelvin sign is k.
func FoldAddress(email string) string {
	folded := []byte(email)
	for i, c := range folded {
		if 'A' <= c && c <= 'Z' {
			folded[i] = c + ('a' - 'A')
		}
	}
	return string(folded)
}
