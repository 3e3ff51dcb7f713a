package quota

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
	"slices"
	"strings"
)

// ErrBatch says that it cannot be told what a batch request would cost. It was
// neither charged nor sent.
var ErrBatch = errors.New("the batch request cannot be priced")

// MethodBatch is the [Method.ID] of a batch request, which no discovery
// document lists. It costs what its parts cost together.
const MethodBatch = "batch"

// maxBatchBytes bounds the body of a batch request, which is kept in memory.
const maxBatchBytes = 8 << 20

// maxBatchParts is how many calls each API takes in one batch.
var maxBatchParts = map[string]int{"gmail": 100, "calendar": 1000}

// priced is a request whose cost is known.
type priced struct {
	send   *http.Request // in place of it, since the body of a batch was read
	method Method
	call   Call
}

// priceOf finds what a request costs its caller.
func priceOf(prices Prices, c Caller, r *http.Request) (p priced, err error) {
	p.send = r
	api, isBatch := batchEndpoint(r)
	var methods []Method
	if isBatch {
		body, err := readBatch(r)
		if err != nil {
			return p, err
		}
		if api, methods, err = batchCalls(api, r.Header.Get("Content-Type"), body); err != nil {
			return p, err
		}
		p.send, p.call.Weight = withBody(r, body), int64(len(methods))
		p.method = Method{API: api, ID: MethodBatch}
	} else {
		p.method = Recognise(r)
		methods = []Method{p.method}
	}
	p.call.Caller, p.call.API = c, p.method.API
	for _, m := range methods {
		units, err := prices.Cost(c.Project, m)
		if err != nil {
			return p, err
		}
		p.call.Cost += units
		p.call.Methods = append(p.call.Methods, m.ID)
		p.call.Features = append(p.call.Features, featuresOf(m.ID)...)
	}
	return p, nil
}

// batchEndpoint reports whether a request is a batch, and for which API as far
// as its address tells: a bare /batch is that of whatever its host serves.
func batchEndpoint(r *http.Request) (api string, ok bool) {
	if r.Method != http.MethodPost {
		return "", false
	}
	segments := slices.DeleteFunc(strings.Split(r.URL.EscapedPath(), "/"), func(s string) bool { return s == "" })
	for i, segment := range segments {
		if plain, err := url.PathUnescape(segment); err == nil {
			segments[i] = plain
		}
	}
	endsWith := func(tail ...string) bool {
		return len(segments) >= len(tail) && slices.Equal(segments[len(segments)-len(tail):], tail)
	}
	switch {
	case endsWith("batch", "gmail", "v1"):
		return "gmail", true
	case endsWith("batch", "calendar", "v3"):
		return "calendar", true
	case len(segments) == 1 && segments[0] == "batch":
		if strings.HasPrefix(r.URL.Hostname(), "gmail.") {
			api = "gmail"
		}
		return api, true
	}
	return "", false
}

func readBatch(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, fmt.Errorf("%w: it has no body", ErrBatch)
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return nil, fmt.Errorf("%w: its body has the Content-Encoding %q; send it plain", ErrBatch, coding)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBatchBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%w: read its body: %w", ErrBatch, err)
	}
	if len(body) > maxBatchBytes {
		return nil, fmt.Errorf("%w: its body has more than %d bytes; send fewer calls at once", ErrBatch, maxBatchBytes)
	}
	return body, nil
}

// withBody is r with a body that has been read, and that can be read again: a
// client or transport that has to send it twice asks GetBody for it.
func withBody(r *http.Request, body []byte) *http.Request {
	send := r.WithContext(r.Context())
	send.ContentLength, send.TransferEncoding = int64(len(body)), nil
	send.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	send.Body = io.NopCloser(bytes.NewReader(body))
	return send
}

// batchCalls recognises the calls of a batch to an API; "" is found out from the
// calls. Those that are no method of the API are calls of it without a method.
func batchCalls(api, contentType string, body []byte) (string, []Method, error) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "multipart/mixed" || params["boundary"] == "" {
		return api, nil, fmt.Errorf("%w: its Content-Type is %q, not multipart/mixed with a boundary", ErrBatch, contentType)
	}
	most := maxBatchParts["calendar"]
	if n, ok := maxBatchParts[api]; ok {
		most = n
	}
	var calls []Method
	parts := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) && err.Error() == io.EOF.Error() { // a wrapped one means that the body ends before its last boundary
			break
		}
		if err != nil {
			return api, nil, fmt.Errorf("%w: find part %d: %w", ErrBatch, len(calls)+1, err)
		}
		if len(calls) == most {
			return api, nil, fmt.Errorf("%w: it has more than %d parts", ErrBatch, most)
		}
		call, err := partCall(part)
		if err != nil {
			return api, nil, fmt.Errorf("%w: part %d: %w", ErrBatch, len(calls)+1, err)
		}
		if api == "" {
			api = call.API
		}
		if call.API != "" && call.API != api {
			return api, nil, fmt.Errorf("%w: part %d calls %s in a batch of %s; send one batch for each API", ErrBatch, len(calls)+1, call.API, api)
		}
		calls = append(calls, call)
	}
	switch {
	case len(calls) == 0:
		return api, nil, fmt.Errorf("%w: it has no parts", ErrBatch)
	case api == "":
		return api, nil, fmt.Errorf("%w: none of its parts calls Gmail or Calendar", ErrBatch)
	case len(calls) > maxBatchParts[api]:
		return api, nil, fmt.Errorf("%w: it has more than %d parts", ErrBatch, maxBatchParts[api])
	}
	for i := range calls {
		calls[i].API = api
	}
	return api, calls, nil
}

// partCall recognises the call of one part by its request line. Google takes the
// line with and without the version of HTTP, and with any form of URL.
func partCall(part *multipart.Part) (Method, error) {
	if kind, _, err := mime.ParseMediaType(part.Header.Get("Content-Type")); err != nil || kind != "application/http" {
		return Method{}, fmt.Errorf("its Content-Type is %q, not application/http", part.Header.Get("Content-Type"))
	}
	switch coding := strings.ToLower(part.Header.Get("Content-Transfer-Encoding")); coding {
	case "", "binary", "8bit", "7bit":
	default:
		return Method{}, fmt.Errorf("its Content-Transfer-Encoding is %q; send it plain", coding)
	}
	lines := textproto.NewReader(bufio.NewReader(part))
	var line string
	for line == "" {
		var err error
		if line, err = lines.ReadLine(); err != nil {
			return Method{}, fmt.Errorf("find its request line: %w", err)
		}
	}
	fields := strings.Fields(line)
	if len(fields) != 2 && !(len(fields) == 3 && strings.HasPrefix(fields[2], "HTTP/")) {
		return Method{}, fmt.Errorf("%.80q is no request line such as GET /gmail/v1/users/me/profile", line)
	}
	target, err := url.Parse(fields[1])
	if err != nil {
		return Method{}, fmt.Errorf("read its address: %w", err)
	}
	inner := &http.Request{Method: fields[0], URL: target}
	if _, nested := batchEndpoint(inner); nested {
		return Method{}, errors.New("it is a batch itself")
	}
	return Recognise(inner), nil
}
