package quota

import (
	"bufio"
	"bytes"
	"io"
	"mime"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
)

// maxStatusLine is how much of a line is looked at: a boundary has at most 70
// characters, and nobody needs the reason of a status.
const maxStatusLine = 256

// A partReader finds the refusals among the parts of a batch's answer while
// somebody else reads it: the answer may be larger than memory should hold, and
// goes to its reader as it came.
type partReader struct {
	delimiter string // before each part
	judge     func(status int, header http.Header, body []byte)

	state  partState
	line   []byte // start of the line that is being read
	status int    // of a refusal
	text   []byte // of it: header and body, as far as they are read
	mark   int    // where the line begins in text
}

type partState int

const (
	partOther   partState = iota // nothing to be read until the next part
	partHead                     // the part's own header
	partStatus                   // before the status of the answer in it
	partRefusal                  // in an answer that refuses
)

// newPartReader returns a reader for an answer of the type, nil if it has no parts.
func newPartReader(contentType string, judge func(status int, header http.Header, body []byte)) *partReader {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || !strings.HasPrefix(kind, "multipart/") || params["boundary"] == "" {
		return nil
	}
	return &partReader{delimiter: "--" + params["boundary"], judge: judge}
}

// write takes the next piece of the answer.
func (r *partReader) write(piece []byte) {
	for len(piece) > 0 {
		chunk, rest, ends := bytes.Cut(piece, []byte{'\n'})
		if ends {
			chunk = piece[:len(chunk)+1]
		}
		piece = rest
		r.line = appendUpTo(r.line, chunk, maxStatusLine)
		if r.state == partRefusal {
			r.text = appendUpTo(r.text, chunk, maxAnswer)
		}
		if ends {
			r.endLine()
			r.line, r.mark = r.line[:0], len(r.text)
		}
	}
}

func appendUpTo(b, more []byte, most int) []byte {
	return append(b, more[:min(len(more), most-len(b))]...)
}

func (r *partReader) endLine() {
	line := string(bytes.TrimRight(r.line, "\r\n\t "))
	switch {
	case line == r.delimiter || line == r.delimiter+"--":
		r.text = r.text[:min(r.mark, len(r.text))]
		r.end()
		r.state = partHead
	case r.state == partHead && line == "":
		r.state = partStatus
	case r.state == partStatus && line != "":
		r.state = partOther
		_, after, _ := strings.Cut(line, " ")
		code, _, _ := strings.Cut(after, " ")
		if status, err := strconv.Atoi(code); err == nil && refuses(status) {
			r.state, r.status, r.text = partRefusal, status, r.text[:0]
		}
	}
}

// end judges the refusal that was read last, also if it was cut.
func (r *partReader) end() {
	if r.state != partRefusal {
		return
	}
	r.state = partOther
	text := bufio.NewReader(bytes.NewReader(r.text))
	header, _ := textproto.NewReader(text).ReadMIMEHeader() // what is there of it
	body, _ := io.ReadAll(text)
	r.judge(r.status, http.Header(header), body)
}
