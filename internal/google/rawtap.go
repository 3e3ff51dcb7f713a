package google

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strconv"
)

const (
	tapStep = 32 << 10
	maxRest = 4 << 20 // bytes of an answer beside its raw message
	maxName = 64      // longer field names are irrelevant
)

var errTwoRaws = errors.New("the answer holds two raw messages")

// A sinkError is the error of the writer that takes a message. It is not Google's.
type sinkError struct{ err error }

func (e *sinkError) Error() string { return e.err.Error() }
func (e *sinkError) Unwrap() error { return e.err }

// A rawTap reads a message's or an attachment's JSON object. It writes the value of
// the field "raw", or of another that is named, decoded from base64, to a sink as it
// comes in, and passes on everything else, with an empty string in that value's place. So no more of a message is in memory
// than a step of it, while the rest goes to Google's client as ever.
//
// It only looks at quotes, brackets, colons and commas. Its reader finds out whether
// the text is JSON.
type rawTap struct {
	from  io.Reader
	to    io.Writer
	field string

	in   []byte // read and not yet looked at
	out  []byte // looked at and not yet passed on
	buf  []byte // what in is read into
	rest int    // bytes passed on so far
	err  error

	state   tapState
	object  bool // the outermost value is an object
	depth   int
	isName  bool // the next string of the object is a field's name
	name    []byte
	isRaw   bool // the field is raw
	escaped []byte
	found   bool // there was a raw
	decoder base64Writer
}

type tapState int

const (
	tapOutside   tapState = iota // of any string
	tapString                    // in one that is passed on
	tapEscape                    // behind a backslash in it
	tapRaw                       // in the message
	tapRawEscape                 // behind a backslash in it
)

func newTap(field string, from io.Reader, to io.Writer) *rawTap {
	return &rawTap{field: field, from: from, to: to, decoder: base64Writer{to: to}}
}

// Read implements [io.Reader].
func (t *rawTap) Read(p []byte) (int, error) {
	for len(t.out) == 0 && t.err == nil {
		if len(t.in) == 0 {
			if t.buf == nil {
				t.buf = make([]byte, tapStep)
			}
			n, err := t.from.Read(t.buf)
			t.in, t.err = t.buf[:n], err
		}
		t.out = t.out[:0:0]
		if err := t.scan(); err != nil {
			t.in, t.out, t.err = nil, nil, err
		}
	}
	n := copy(p, t.out)
	t.out = t.out[n:]
	if len(t.out) > 0 {
		return n, nil
	}
	return n, t.err
}

// scan looks at all of in.
func (t *rawTap) scan() error {
	for len(t.in) > 0 {
		var err error
		if t.state == tapRaw {
			err = t.scanRaw()
		} else {
			c := t.in[0]
			t.in = t.in[1:]
			if t.state == tapRawEscape {
				err = t.scanRawEscape(c)
			} else {
				err = t.pass(c)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pass passes on one byte that is not the message's.
func (t *rawTap) pass(c byte) error {
	if t.rest++; t.rest > maxRest {
		return errTooLarge
	}
	t.out = append(t.out, c)
	switch t.state {
	case tapEscape:
		t.state = tapString
		t.addName(c)
	case tapString:
		switch c {
		case '"':
			t.state = tapOutside
			t.endString()
		case '\\':
			t.state = tapEscape
			t.addName(c)
		default:
			t.addName(c)
		}
	default:
		return t.outside(c)
	}
	return nil
}

// outside looks at a byte outside any string.
func (t *rawTap) outside(c byte) error {
	top := t.depth == 1 && t.object
	switch c {
	case '"':
		if !top || !t.isRaw {
			t.state = tapString
			t.name = t.name[:0]
			return nil
		}
		if t.found {
			return errTwoRaws
		}
		t.found, t.isRaw, t.state = true, false, tapRaw
		t.out = append(t.out, '"')
	case '{', '[':
		if t.depth++; t.depth == 1 {
			t.object = c == '{'
			t.isName = t.object
		}
		t.isRaw = false
	case '}', ']':
		t.depth--
	case ',':
		if top {
			t.isName, t.isRaw = true, false
		}
	}
	return nil
}

func (t *rawTap) addName(c byte) {
	if len(t.name) < maxName {
		t.name = append(t.name, c)
	}
}

// endString decides, if the string was a field's name, whether the field is the
// message.
func (t *rawTap) endString() {
	if t.depth != 1 || !t.isName {
		return
	}
	t.isName = false
	var name string
	if json.Unmarshal([]byte(`"`+string(t.name)+`"`), &name) == nil {
		t.isRaw = name == t.field
	}
}

// scanRaw takes the available part of the message.
func (t *rawTap) scanRaw() error {
	end := bytes.IndexAny(t.in, `"\`)
	if end < 0 {
		end = len(t.in)
	}
	if err := t.decoder.write(t.in[:end]); err != nil {
		return err
	}
	t.in = t.in[end:]
	if len(t.in) == 0 {
		return nil
	}
	quote := t.in[0] == '"'
	t.in = t.in[1:]
	if !quote {
		t.state, t.escaped = tapRawEscape, t.escaped[:0]
		return nil
	}
	t.state = tapOutside
	return t.decoder.close()
}

// scanRawEscape takes the next byte of an escaped one: Google writes the padding
// as \u003d.
func (t *rawTap) scanRawEscape(c byte) error {
	t.escaped = append(t.escaped, c)
	if short, ok := shortEscapes[t.escaped[0]]; ok {
		t.state = tapRaw
		return t.decoder.write([]byte{short})
	}
	if t.escaped[0] != 'u' { // no other escape is base64
		return base64.CorruptInputError(t.decoder.taken)
	}
	if len(t.escaped) < len("u0000") {
		return nil
	}
	t.state = tapRaw
	code, err := strconv.ParseUint(string(t.escaped[1:]), 16, 16)
	if err != nil || code > 0x7f {
		return base64.CorruptInputError(t.decoder.taken)
	}
	return t.decoder.write([]byte{byte(code)})
}

// shortEscapes are those of JSON that may stand in base64.
var shortEscapes = map[byte]byte{'/': '/', 'n': '\n', 'r': '\r', 't': '\t'}

// A base64Writer decodes base64 in pieces of any length: in the alphabet of URLs,
// which is Google's, or in the standard one; with padding or without; with lines
// broken or not.
type base64Writer struct {
	to     io.Writer
	taken  int64 // bytes of base64
	left   [4]byte
	n      int // of left
	padded bool
	buf    []byte
	plain  []byte
}

// plainText is a text without white space, in the alphabet of URLs.
func (w *base64Writer) plainText(text []byte) []byte {
	if !bytes.ContainsAny(text, "+/ \t\r\n") {
		return text
	}
	w.plain = w.plain[:0]
	for _, c := range text {
		switch c {
		case '+':
			c = '-'
		case '/':
			c = '_'
		case ' ', '\t', '\r', '\n':
			continue
		}
		w.plain = append(w.plain, c)
	}
	return w.plain
}

func (w *base64Writer) write(text []byte) error {
	at := w.taken
	w.taken += int64(len(text))
	text = w.plainText(text)
	if i := bytes.IndexByte(text, '='); i >= 0 || w.padded {
		i = max(i, 0)
		if w.padded && len(text) > 0 && text[0] != '=' || len(bytes.Trim(text[i:], "=")) > 0 {
			return base64.CorruptInputError(at)
		}
		w.padded, text = true, text[:i]
	}
	if w.n > 0 {
		n := copy(w.left[w.n:], text)
		w.n, text = w.n+n, text[n:]
		if w.n < len(w.left) {
			return nil
		}
		w.n = 0
		if err := w.decode(w.left[:]); err != nil {
			return err
		}
	}
	whole := len(text) &^ 3
	w.n = copy(w.left[:], text[whole:])
	return w.decode(text[:whole])
}

// close decodes what is left, at the end of the text.
func (w *base64Writer) close() error {
	n := w.n
	w.n = 0
	return w.decode(w.left[:n])
}

func (w *base64Writer) decode(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if need := base64.RawURLEncoding.DecodedLen(len(text)); cap(w.buf) < need {
		w.buf = make([]byte, need)
	}
	n, err := base64.RawURLEncoding.Decode(w.buf[:cap(w.buf)], text)
	if err != nil {
		return err
	}
	if _, err := w.to.Write(w.buf[:n]); err != nil {
		return &sinkError{err}
	}
	return nil
}
