package fakegoogle

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
)

// largestBatch bounds the body of a batch, in bytes.
const largestBatch = 8 << 20

// A batchPart is one call of a batch and what became of it.
type batchPart struct {
	contentID string
	request   *http.Request
	answer    partWriter
	undo      func()
	aborted   bool // a fault cut the connection
}

// readBatch takes a batch apart into its calls.
func readBatch(w http.ResponseWriter, r *http.Request, most int) ([]*batchPart, error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/mixed" {
		return nil, fmt.Errorf("Content-Type %q is not multipart/mixed", r.Header.Get("Content-Type"))
	}
	var parts []*batchPart
	reader := multipart.NewReader(http.MaxBytesReader(w, r.Body, largestBatch), params["boundary"])
	for {
		p, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) && errors.Unwrap(err) == nil { // wrapped, it says that the last boundary is missing
			break
		}
		if err != nil {
			return nil, err
		}
		if len(parts) == most {
			return nil, fmt.Errorf("more than %d requests", most)
		}
		part, err := readPart(r, p)
		if err != nil {
			return nil, fmt.Errorf("request %d: %w", len(parts)+1, err)
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return nil, errors.New("0 items")
	}
	return parts, nil
}

// readPart makes a request of a part. It has the batch's headers where it has
// none of its own, except those that speak of the batch's body and coding.
func readPart(r *http.Request, p *multipart.Part) (*batchPart, error) {
	if kind, _, err := mime.ParseMediaType(p.Header.Get("Content-Type")); err != nil || kind != "application/http" {
		return nil, fmt.Errorf("Content-Type %q is not application/http", p.Header.Get("Content-Type"))
	}
	text := bufio.NewReader(p)
	lines := textproto.NewReader(text)
	line, err := lines.ReadLine()
	if err != nil {
		return nil, fmt.Errorf("no request line: %w", err)
	}
	verb, rest, _ := strings.Cut(line, " ")
	address, _, _ := strings.Cut(rest, " ") // the version of HTTP may be missing
	target, err := url.Parse(address)
	if err != nil || address == "" {
		return nil, fmt.Errorf("request line %.80q", line)
	}
	if target.Host == "" && !strings.HasPrefix(target.Path, "/") {
		if target, err = url.Parse("/" + address); err != nil {
			return nil, fmt.Errorf("request line %.80q", line)
		}
	}
	own, err := lines.ReadMIMEHeader()
	if err != nil && !errors.Is(err, io.EOF) { // a part may end with its request line
		return nil, fmt.Errorf("headers: %w", err)
	}
	header := r.Header.Clone()
	for name := range header {
		if strings.HasPrefix(name, "Content-") {
			header.Del(name)
		}
	}
	for name, values := range own {
		header[name] = values
	}
	body, err := io.ReadAll(text)
	if err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	header.Del("Accept-Encoding") // the batch is compressed as a whole
	request := (&http.Request{Method: verb, URL: target, Header: header, Host: r.Host, Body: io.NopCloser(bytes.NewReader(body))}).WithContext(r.Context())
	return &batchPart{contentID: p.Header.Get("Content-Id"), request: request, answer: partWriter{header: http.Header{}}}, nil
}

// partWriter is the [http.ResponseWriter] of one part: it keeps the answer.
type partWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *partWriter) Header() http.Header { return w.header }

func (w *partWriter) WriteHeader(status int) { w.status = status }

func (w *partWriter) Write(p []byte) (int, error) { return w.body.Write(p) }
