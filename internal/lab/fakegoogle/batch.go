package fakegoogle

import (
	"bytes"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"sync"

	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/wire"
)

// A batchEndpoint is where one API takes batches.
type batchEndpoint struct {
	prefix string // of the paths that its parts may call
	most   int    // parts
}

var batchEndpoints = map[string]batchEndpoint{
	"/batch":             {prefix: "/gmail/v1/", most: 100},
	"/batch/gmail/v1":    {prefix: "/gmail/v1/", most: 100},
	"/batch/calendar/v3": {prefix: "/calendar/v3/", most: 1000},
}

func batchEndpointOf(r *http.Request) (batchEndpoint, bool) {
	endpoint, ok := batchEndpoints[r.URL.Path]
	return endpoint, ok && r.Method == http.MethodPost
}

// serveBatch takes each part for a call of its own, which is charged, refused
// and answered by itself. All of them reach the meter before one is answered, as
// they do where they run at the same time: a batch of n is n calls in flight.
func (s *Server) serveBatch(w http.ResponseWriter, r *http.Request, endpoint batchEndpoint) {
	wire.Pause(s.life, s.jitter(), nil)
	parts, err := readBatch(w, r, endpoint.most)
	if err != nil {
		answer := wire.RenderError(r, wire.BadRequest("Failed to parse batch request, error: "+err.Error())) // unverified
		_ = answer.Send(w)
		return
	}
	var group sync.WaitGroup
	var finish []func()
	for _, part := range parts {
		if !strings.HasPrefix(part.request.URL.EscapedPath(), endpoint.prefix) {
			part.request.URL = &url.URL{Path: "/"} // of another API: nothing is there
		}
		v, refusal := s.admit(part.request)
		if refusal != nil {
			_ = refusal.Send(&part.answer) // a partWriter does not fail
			continue
		}
		finish = append(finish, func() { s.finishPart(part, v) })
	}
	for _, f := range finish {
		group.Go(f)
	}
	group.Wait()

	s.shuffle(parts)
	answer, undo := batchAnswer(parts)
	if answer == nil {
		undo()
		fault.Reset(w)
		return
	}
	answer.Compress(r)
	if answer.Send(w) != nil {
		undo()
	}
}

// finishPart answers one part. A fault that cuts the connection cannot cut it
// for one part alone.
func (s *Server) finishPart(part *batchPart, v visit) {
	defer func() {
		p := recover()
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			part.aborted = true
		} else if p != nil {
			panic(p)
		}
	}()
	part.undo, _ = s.finish(&part.answer, part.request, v) // a partWriter does not fail
}

// shuffle puts parts into the order of their answers, which Google does not
// promise to be that of the calls.
func (s *Server) shuffle(parts []*batchPart) {
	s.randMu.Lock()
	defer s.randMu.Unlock()
	s.rand.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
}

// batchAnswer puts the parts' answers into one; nil if a fault cut the
// connection. undo takes back what was counted as delivered.
func batchAnswer(parts []*batchPart) (answer *wire.Reply, undo func()) {
	undo = func() {
		for _, part := range parts {
			if part.undo != nil {
				part.undo()
			}
		}
	}
	var body bytes.Buffer
	m := multipart.NewWriter(&body)
	for _, part := range parts {
		if part.aborted {
			return nil, undo
		}
		header := textproto.MIMEHeader{"Content-Type": {"application/http"}}
		if id := part.contentID; strings.HasPrefix(id, "<") {
			header.Set("Content-Id", "<response-"+id[1:])
		} else if id != "" {
			header.Set("Content-Id", "response-"+id)
		}
		out, err := m.CreatePart(header)
		if err != nil { // only if the buffer failed
			return nil, undo
		}
		fmt.Fprintf(out, "HTTP/1.1 %d %s\r\n", part.answer.status, http.StatusText(part.answer.status))
		_ = part.answer.header.Write(out)
		fmt.Fprintf(out, "\r\n%s\r\n", part.answer.body.Bytes())
	}
	_ = m.Close()
	return &wire.Reply{Status: http.StatusOK, ContentType: "multipart/mixed; boundary=" + m.Boundary(), Body: body.Bytes()}, undo
}
