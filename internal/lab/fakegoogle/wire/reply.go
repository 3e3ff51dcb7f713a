package wire

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

// A Reply is an answer ready to be sent.
type Reply struct {
	Status      int
	ContentType string
	Header      map[string]string
	Body        []byte
	// Stream, where there is one, comes between body and after, and gzipped says that
	// it is compressed on its way.
	Stream  *Stream
	after   []byte
	gzipped bool
}

// NoContent is the answer of a method that has none.
type NoContent struct{}

func (NoContent) reply() Reply { return Reply{Status: http.StatusNoContent, ContentType: JSONType} }

// JSONType is the content type of Google's JSON.
const JSONType = "application/json; charset=UTF-8"

// Render makes the reply to an API request from what its handler returned,
// under the query parameters that every method takes: fields, prettyPrint, alt. What
// an [Edit] changes comes last.
func Render(r *http.Request, answer any, failure *Error, edit Edit) Reply {
	q := r.URL.Query()
	s, isStreamed := answer.(Streamed)
	if isStreamed {
		answer = s.Answer
	}
	if alt := q.Get("alt"); failure == nil && alt != "" && alt != "json" {
		failure = BadRequest("The fake answers alt=json only, not alt=" + alt)
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
		return RenderError(r, failure)
	}
	if none, ok := answer.(NoContent); ok {
		return none.reply()
	}
	body, err := EncodeJSON(answer)
	if err == nil && selection != nil {
		body, err = selection.apply(body)
	}
	if err == nil && edit.any() {
		body, err = edit.apply(body)
	}
	if err != nil {
		return RenderError(r, NewError(http.StatusInternalServerError, "global", "backendError", err.Error()))
	}
	a := Reply{Status: http.StatusOK, ContentType: JSONType, Body: pretty(r, body)}
	if before, after, ok := bytes.Cut(a.Body, []byte(StreamMark)); isStreamed && ok { // the mask may have left it out
		a.Body, a.after, a.Stream = before, after, &s.Stream
	}
	return a
}

// RenderError makes the reply of an error.
func RenderError(r *http.Request, e *Error) Reply {
	body, err := EncodeJSON(map[string]*Error{"error": e})
	if err != nil {
		body = []byte(`{"error":{"code":500}}`)
	}
	return Reply{Status: e.Code, ContentType: JSONType, Body: pretty(r, body)}
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

// Compress encodes the body when the client asked for it.
func (a *Reply) Compress(r *http.Request) {
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") || len(a.Body) == 0 {
		return
	}
	if a.Stream != nil {
		a.gzipped = true
		a.Header = WithHeader(a.Header, "Content-Encoding", "gzip")
		return
	}
	var b bytes.Buffer
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	w.Reset(&b)
	if _, err := w.Write(a.Body); err != nil {
		return
	}
	if w.Close() != nil {
		return
	}
	a.Body = b.Bytes()
	a.Header = WithHeader(a.Header, "Content-Encoding", "gzip")
}

// WithHeader sets a header, in a new map where there is none.
func WithHeader(h map[string]string, name, value string) map[string]string {
	if h == nil {
		h = map[string]string{}
	}
	h[name] = value
	return h
}

// Length is how long the body is before a stream is compressed.
func (a *Reply) Length() int {
	n := len(a.Body) + len(a.after)
	if a.Stream != nil {
		n += a.Stream.length()
	}
	return n
}

// Send writes the reply; an error means that the client did not get all of it.
func (a *Reply) Send(w http.ResponseWriter) error {
	a.WriteHead(w)
	return a.WriteBody(w)
}

// WriteBody writes the body, compressed where Compress said so.
func (a *Reply) WriteBody(w io.Writer) error {
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

func (a *Reply) writePlain(w io.Writer) error {
	if _, err := w.Write(a.Body); err != nil || a.Stream == nil {
		return err
	}
	if err := a.Stream.write(w); err != nil {
		return err
	}
	_, err := w.Write(a.after)
	return err
}

// WriteHead writes status and header.
func (a *Reply) WriteHead(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", a.ContentType)
	h.Set("Vary", "Origin, X-Origin, Referer, Accept-Encoding")
	h.Set("Cache-Control", "private")
	if !a.gzipped {
		h.Set("Content-Length", strconv.Itoa(a.Length()))
	}
	for name, value := range a.Header {
		h.Set(name, value)
	}
	w.WriteHeader(a.Status)
}
