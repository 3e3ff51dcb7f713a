package quota

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxUser is the longest user, in bytes: a key of Redis carries it.
const maxUser = 320

// Validate reports what is wrong with a caller, wrapping [ErrCaller]. A user is
// counted by its exact spelling, but for A to Z, which count as a to z: whoever has
// a second spelling has a second quota, and Google has only one. So spellings that
// nobody means are refused wherever a caller is given: none at all, white space,
// what cannot be seen, other capital letters, and letters that are put together of
// parts.
func (c Caller) Validate() error {
	if !c.Lane.Valid() {
		return fmt.Errorf("%w: unknown lane %q; there are %v", ErrCaller, c.Lane, Lanes)
	}
	return checkUser(c.User)
}

func checkUser(user string) error {
	if problem := userProblem(user); problem != "" {
		return fmt.Errorf("%w: user %.80q %s; give the address of the Google user whose quota is spent, such as ann@example.com", ErrCaller, user, problem)
	}
	return nil
}

// userProblem says what is wrong with a user, "" if nothing is.
func userProblem(user string) string {
	if user == "" {
		return "is empty"
	}
	if len(user) > maxUser {
		return fmt.Sprintf("has more than %d bytes", maxUser)
	}
	plain := true
	for i := range len(user) {
		c := user[i]
		plain = plain && c < utf8.RuneSelf
		if c <= ' ' || c == 0x7f {
			return "holds white space or a control character"
		}
	}
	switch {
	case plain:
		return ""
	case !utf8.ValidString(user):
		return "is no UTF-8"
	case strings.ContainsFunc(user, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "holds a character that cannot be seen"
	case strings.ContainsFunc(user, func(r rune) bool { return r >= utf8.RuneSelf && (unicode.IsUpper(r) || unicode.IsTitle(r)) }):
		return "holds a capital letter; write it in lower case"
	case !norm.NFC.IsNormalString(user):
		return "is not in the Unicode form NFC"
	}
	return ""
}

// projectProblem says what is wrong with the name of a project, "" if nothing is.
// It is the hash tag of the project's keys, which ends with the first brace.
func projectProblem(name string) string {
	switch {
	case name == "":
		return "its name is empty"
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }):
		return "its name holds white space or a character that cannot be seen"
	case strings.ContainsAny(name, "{}"):
		return "its name holds a brace"
	}
	return ""
}
