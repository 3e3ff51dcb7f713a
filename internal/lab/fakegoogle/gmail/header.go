package gmail

import (
	"bytes"
	"io"
	"mime"
	"strings"

	"golang.org/x/text/encoding/htmlindex"
)

// A header is the fields of a message or part in their order, unfolded but not
// decoded. It may be empty.
type header []field

type field struct{ name, value string }

// get returns the first field of that name, in any case; "" where there is none.
func (h header) get(name string) string {
	for _, f := range h {
		if strings.EqualFold(f.name, name) {
			return f.value
		}
	}
	return ""
}

// decoded returns the first field of that name as a reader sees it.
func (h header) decoded(name string) string { return decodeWords(h.get(name)) }

// splitMessage parts a message into header and body at the first empty line. It
// takes anything: lines that are no field are passed over, and bytes that hold
// no empty line are all header.
func splitMessage(raw []byte) (header, []byte) {
	var h header
	rest := raw
	for len(rest) > 0 {
		line, after := cutLine(rest)
		rest = after
		if len(line) == 0 {
			return h, rest
		}
		if line[0] == ' ' || line[0] == '\t' {
			if n := len(h); n > 0 {
				h[n-1].value += " " + strings.TrimSpace(string(line))
			}
			continue
		}
		name, value, ok := strings.Cut(string(line), ":")
		name = strings.TrimRight(name, " \t")
		if !ok || name == "" || strings.ContainsAny(name, " \t") {
			continue // a "From " line, or junk
		}
		h = append(h, field{name: name, value: strings.TrimSpace(value)})
	}
	return h, nil
}

// cutLine returns the first line without its end, and what follows it.
func cutLine(b []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(b, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), rest
}

// decodeWords decodes RFC 2047 words; what cannot be decoded stays as it is, and
// bytes that are no UTF-8 become U+FFFD.
func decodeWords(s string) string {
	decoder := mime.WordDecoder{CharsetReader: func(charset string, in io.Reader) (io.Reader, error) {
		encoding, err := htmlindex.Get(charset)
		if err != nil {
			return nil, err
		}
		return encoding.NewDecoder().Reader(in), nil
	}}
	if decoded, err := decoder.DecodeHeader(s); err == nil {
		s = decoded
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// toUTF8 transcodes text of a named charset. Text of a charset that nobody knows
// is returned as it is.
func toUTF8(b []byte, charset string) []byte {
	if charset == "" || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "us-ascii") {
		return b
	}
	encoding, err := htmlindex.Get(charset)
	if err != nil {
		return b
	}
	out, err := encoding.NewDecoder().Bytes(b)
	if err != nil {
		return b
	}
	return out
}

// mediaType reads a Content-Type, falling back as Gmail and RFC 2045 do: to
// text/plain when there is none or it cannot be read.
func mediaType(h header) (string, map[string]string) {
	value := h.get("Content-Type")
	if value == "" {
		return "text/plain", nil
	}
	kind, params, err := mime.ParseMediaType(value)
	if err != nil && kind == "" {
		kind, _, _ = strings.Cut(value, ";")
		kind, params = strings.ToLower(strings.TrimSpace(kind)), looseParams(value)
	}
	if !strings.Contains(kind, "/") {
		return "text/plain", nil
	}
	return kind, params
}

// looseParams reads what it can of parameters that the standard reader refuses.
func looseParams(value string) map[string]string {
	params := map[string]string{}
	for _, part := range strings.Split(value, ";")[1:] {
		if name, v, ok := strings.Cut(part, "="); ok {
			params[strings.ToLower(strings.TrimSpace(name))] = strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return params
}
