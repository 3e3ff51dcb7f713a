package fakegoogle

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// A reply is an answer ready to be sent.
type reply struct {
	status      int
	contentType string
	header      map[string]string
	body        []byte
	// stream, where there is one, comes between body and after, and gzipped says that
	// it is compressed on its way.
	stream  *stream
	after   []byte
	gzipped bool
}

// noContent is the answer of a method that has none.
type noContent struct{}

func (noContent) reply() reply { return reply{status: http.StatusNoContent, contentType: jsonType} }

const jsonType = "application/json; charset=UTF-8"

// render makes the reply to an API request from what its handler returned,
// under the query parameters that every method takes: fields, prettyPrint, alt. What
// is odd about it comes last.
func render(r *http.Request, answer any, failure *apiError, odd Edit) reply {
	q := r.URL.Query()
	s, isStreamed := answer.(streamed)
	if isStreamed {
		answer = s.answer
	}
	if alt := q.Get("alt"); failure == nil && alt != "" && alt != "json" {
		failure = badRequest("The fake answers alt=json only, not alt=" + alt)
	}
	var selection mask
	if text := q.Get("fields"); failure == nil && text != "" {
		m, err := parseMask(text)
		if err != nil {
			failure = invalidParameter(err.Error())
		} else if name := m.unknown(reflect.TypeOf(answer)); name != "" {
			failure = invalidParameter("Invalid field selection " + name)
		}
		selection = m
	}
	if failure != nil {
		return renderError(r, failure)
	}
	if none, ok := answer.(noContent); ok {
		return none.reply()
	}
	body, err := encodeJSON(answer)
	if err == nil && selection != nil {
		body, err = selection.apply(body)
	}
	if err == nil && odd.any() {
		body, err = odd.apply(body)
	}
	if err != nil {
		return renderError(r, newError(http.StatusInternalServerError, "global", "backendError", err.Error()))
	}
	a := reply{status: http.StatusOK, contentType: jsonType, body: pretty(r, body)}
	if before, after, ok := bytes.Cut(a.body, []byte(streamMark)); isStreamed && ok { // the mask may have left it out
		a.body, a.after, a.stream = before, after, &s.stream
	}
	return a
}

func renderError(r *http.Request, e *apiError) reply {
	body, err := encodeJSON(map[string]*apiError{"error": e})
	if err != nil {
		body = []byte(`{"error":{"code":500}}`)
	}
	return reply{status: e.Code, contentType: jsonType, body: pretty(r, body)}
}

// pretty indents unless asked not to, as Google does.
func pretty(r *http.Request, body []byte) []byte {
	if p := r.URL.Query().Get("prettyPrint"); p == "false" || p == "0" {
		return body
	}
	var b bytes.Buffer
	if json.Indent(&b, body, "", "  ") != nil {
		return body
	}
	return b.Bytes()
}

var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // fails for an unknown level only
	return w
}}

// compress encodes the body when the client asked for it.
func (a *reply) compress(r *http.Request) {
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") || len(a.body) == 0 {
		return
	}
	if a.stream != nil {
		a.gzipped = true
		a.header = withHeader(a.header, "Content-Encoding", "gzip")
		return
	}
	var b bytes.Buffer
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	w.Reset(&b)
	if _, err := w.Write(a.body); err != nil {
		return
	}
	if w.Close() != nil {
		return
	}
	a.body = b.Bytes()
	a.header = withHeader(a.header, "Content-Encoding", "gzip")
}

// withHeader sets a header, in a new map where there is none.
func withHeader(h map[string]string, name, value string) map[string]string {
	if h == nil {
		h = map[string]string{}
	}
	h[name] = value
	return h
}

// length is how long the body is before a stream is compressed.
func (a *reply) length() int {
	n := len(a.body) + len(a.after)
	if a.stream != nil {
		n += a.stream.length()
	}
	return n
}

// send writes the reply; its error says that the client did not get all of it.
func (a *reply) send(w http.ResponseWriter) error {
	a.writeHead(w)
	return a.writeBody(w)
}

func (a *reply) writeBody(w io.Writer) error {
	if !a.gzipped {
		return a.writePlain(w)
	}
	z := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(z)
	z.Reset(w)
	if err := a.writePlain(z); err != nil {
		return err
	}
	return z.Close()
}

func (a *reply) writePlain(w io.Writer) error {
	if _, err := w.Write(a.body); err != nil || a.stream == nil {
		return err
	}
	if err := a.stream.write(w); err != nil {
		return err
	}
	_, err := w.Write(a.after)
	return err
}

func (a *reply) writeHead(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", a.contentType)
	h.Set("Vary", "Origin, X-Origin, Referer, Accept-Encoding")
	h.Set("Cache-Control", "private")
	if !a.gzipped {
		h.Set("Content-Length", strconv.Itoa(a.length()))
	}
	for name, value := range a.header {
		h.Set(name, value)
	}
	w.WriteHeader(a.status)
}
