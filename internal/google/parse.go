package google

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/jhillyerd/enmime/v2"
)

// Bounds on parsing a message. Parse ignores what lies beyond them, and that does not
// make a message unreadable: the raw bytes are kept in any case.
const (
	maxHeader       = 1 << 20        // bytes of a header
	maxSubject      = 1000           // bytes of a subject that are kept
	maxCodedSubject = 8 * maxSubject // bytes of a subject that are decoded
	maxParseError   = 200            // bytes of an error that quotes the message
)

var (
	errEmpty    = errors.New("the message is empty")
	errNoHeader = errors.New("the message has no header")
)

// Parse reads the header of a message and returns its subject, decoded, as
// valid UTF-8 on one line. It forgives what mail readers forgive: unknown
// charsets and encodings, 8-bit text, lines that are no header fields, a
// leading mbox "From " line or byte order mark.
//
// The error means that a mail reader cannot read the message: it is empty, it has no
// header field, or its header begins with something that cannot begin one. Parse does
// not decode what stands below a readable header, however broken its structure: readers
// disagree about it, nothing here depends on it, and walking it may take time
// exponential in the depth of unclosed multiparts. So the time that Parse takes depends
// on the header alone.
func Parse(raw []byte) (subject string, err error) {
	defer func() {
		if r := recover(); r != nil {
			subject, err = "", fmt.Errorf("the message crashes its reader: %v", r)
		}
	}()
	raw = skipPreamble(raw[:min(len(raw), maxHeader)])
	if len(bytes.TrimSpace(raw)) == 0 {
		return "", errEmpty
	}
	// The parser would drop the last line of a header that ends without a line end.
	closed := io.MultiReader(bytes.NewReader(raw), strings.NewReader("\r\n"))
	header, err := enmime.ReadHeader(bufio.NewReader(closed), tolerant{})
	if err != nil {
		return "", fmt.Errorf("read the message's header: %s", oneLine(err.Error(), maxParseError))
	}
	if len(header) == 0 {
		return "", errNoHeader
	}
	return subjectOf(header.Get("Subject")), nil
}

// subjectOf decodes a subject.
func subjectOf(coded string) string {
	return oneLine(enmime.DecodeRFC2047(coded[:min(len(coded), maxCodedSubject)]), maxSubject)
}

// tolerant drops errors about header lines that could be skipped.
type tolerant struct{}

func (tolerant) AddError(string, string, ...any)   {}
func (tolerant) AddWarning(string, string, ...any) {}

// skipPreamble drops what mail programs put before the first field of a message.
func skipPreamble(raw []byte) []byte {
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	if bytes.HasPrefix(raw, []byte("From ")) || bytes.HasPrefix(raw, []byte(">From ")) {
		if _, rest, found := bytes.Cut(raw, []byte("\n")); found {
			return rest
		}
	}
	return raw
}

// oneLine returns s as valid UTF-8 without control characters, of at most limit bytes.
func oneLine(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s))
	if len(s) <= limit {
		return s
	}
	for !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
