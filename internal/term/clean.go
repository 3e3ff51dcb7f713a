package term

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Clean returns text as one line that cannot control a terminal: each control character,
// line break, bidirectional control and invisible format character becomes a space, and
// each byte that is not UTF-8 the replacement character. Text in any script stays
// readable.
func Clean(text string) string {
	if harmless(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if moves(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
}

// CleanLines is [Clean] for a text whose line breaks and tabs are to stay.
func CleanLines(text string) string {
	if harmless(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && moves(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
}

// harmless reports whether text is printable ASCII, as most text is.
func harmless(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// joiner is the zero-width joiner, which scripts and emoji need between letters.
const joiner = '\u200d'

// moves reports whether a terminal may do something other than show r: the
// control characters (C0, C1), line and paragraph separators, and the format
// characters (category Cf), among which are all bidirectional controls, tags and
// zero-width characters. The joiners stay: Persian and emoji need them.
func moves(r rune) bool {
	switch {
	case r == joiner || r == '\u200c':
		return false
	case r == '\u2028' || r == '\u2029':
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}

// EscapeJSON escapes in a JSON document the characters that [Clean] replaces in text.
// Parsers read the same values.
func EscapeJSON(doc []byte) []byte {
	if harmless(strings.TrimRight(string(doc), "\n")) {
		return doc
	}
	out := make([]byte, 0, len(doc))
	for _, r := range string(doc) {
		if r == '\n' || !moves(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			const hex = "0123456789abcdef"
			out = append(out, '\\', 'u', hex[unit>>12&15], hex[unit>>8&15], hex[unit>>4&15], hex[unit&15])
		}
	}
	return out
}
