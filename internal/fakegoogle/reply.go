package fakegoogle

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
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
}

const jsonType = "application/json; charset=UTF-8"

// render makes the reply to an API request from what its handler returned,
// under the query parameters that every method takes: fields, prettyPrint, alt.
func render(r *http.Request, answer any, failure *apiError) reply {
	q := r.URL.Query()
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
	body, err := encodeJSON(answer)
	if err == nil && selection != nil {
		body, err = selection.apply(body)
	}
	if err != nil {
		return renderError(r, newError(http.StatusInternalServerError, "global", "backendError", err.Error()))
	}
	return reply{status: http.StatusOK, contentType: jsonType, body: pretty(r, body)}
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
	if a.header == nil {
		a.header = map[string]string{}
	}
	a.header["Content-Encoding"] = "gzip"
}

// send writes the reply; its error says that the client did not get all of it.
func (a *reply) send(w http.ResponseWriter) error {
	a.writeHead(w)
	_, err := w.Write(a.body)
	return err
}

func (a *reply) writeHead(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", a.contentType)
	h.Set("Vary", "Origin, X-Origin, Referer, Accept-Encoding")
	h.Set("Cache-Control", "private")
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	for name, value := range a.header {
		h.Set(name, value)
	}
	w.WriteHeader(a.status)
}
