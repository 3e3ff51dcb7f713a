package gmail

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"slices"
	"strings"
	"time"

	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

// uploads are the methods that take a message as it is, at a path that begins with
// /upload.
var uploads = []string{methodMessagesInsert, methodMessagesImport}

// largestMessage is how large a message may be that is inserted or imported, in
// bytes, and largestUpload how large the request around it, with the message in
// base64.
const (
	largestMessage = 150 << 20
	largestUpload  = largestMessage/3*4 + wire.LargestRequest
)

// largestBody bounds the body of an operation, in bytes.
func (op Operation) largestBody() int64 {
	if slices.Contains(uploads, op.Method) {
		return largestUpload
	}
	return wire.LargestRequest
}

// A sentMessage is the message of a request, as far as the fake takes it.
type sentMessage struct {
	Raw      string   `json:"raw"`
	LabelIDs []string `json:"labelIds"`
	ThreadID string   `json:"threadId"`

	bytes []byte
}

// insertMessage serves gmail.users.messages.insert and import, which differ in the
// internal date only: nothing is scanned or classified here, and a message has the
// labels that it is given.
func (m *Mailbox) insertMessage(op Operation, q page.Request) (any, *wire.Error) {
	source := q.Get("internalDateSource")
	if !slices.Contains([]string{"", "receivedTime", "dateHeader"}, source) {
		return nil, wire.BadRequest("Invalid value at 'internal_date_source' (type.googleapis.com/google.apps.gmail.v1.InternalDateSource), \"" + source + "\"")
	}
	deleted, bad := page.Bool(q.Values, "deleted")
	if bad != nil {
		return nil, bad
	}
	sent, bad := readSent(op, q)
	if bad != nil {
		return nil, bad
	}
	msg := newMessage(content{head: sent.bytes}, sent.LabelIDs)
	msg.internalDate = time.Now().UnixMilli()
	if source == "dateHeader" || source == "" && op.Method == methodMessagesImport {
		if date, ok := headerDate(msg.head); ok {
			msg.internalDate = date
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.byThread[sent.ThreadID]; !ok && sent.ThreadID != "" {
		return nil, wire.NotFound()
	}
	m.insert(msg, sent.ThreadID)
	if deleted { // it is Vault's only
		m.remove(msg)
	}
	return messageRef{ID: msg.id, ThreadID: msg.threadID, LabelIDs: msg.labels}, nil
}

// readSent reads the message of a request: in the JSON of its resource, after that
// in a body of two parts, or as the whole of the body.
func readSent(op Operation, q page.Request) (sentMessage, *wire.Error) {
	var sent sentMessage
	var bad *wire.Error
	switch kind := q.Get("uploadType"); {
	case !op.upload:
		bad = sent.readResource(q.Body)
	case kind == "multipart":
		bad = sent.readParts(q)
	case kind == "media":
		sent.bytes = q.Body
	default:
		bad = wire.BadRequest(fmt.Sprintf("The fake takes uploads of uploadType media and multipart, not %q", kind))
	}
	switch {
	case bad != nil:
		return sent, bad
	case len(sent.bytes) == 0:
		return sent, wire.BadRequest("'raw' RFC822 payload message string or uploading message via /upload/* URL required")
	case len(sent.bytes) > largestMessage:
		return sent, wire.BadRequest(fmt.Sprintf("Message too large: %d bytes, at most %d", len(sent.bytes), largestMessage))
	}
	return sent, nil
}

// readResource reads the JSON of a message.
func (m *sentMessage) readResource(body []byte) *wire.Error {
	if err := json.Unmarshal(body, m); err != nil {
		return wire.BadRequest("Invalid JSON payload received. " + err.Error())
	}
	// Clients send either alphabet, with padding or without.
	plain := strings.TrimRight(strings.NewReplacer("+", "-", "/", "_").Replace(m.Raw), "=")
	raw, err := base64.RawURLEncoding.DecodeString(plain)
	if err != nil {
		return wire.BadRequest("Invalid value at 'message.raw' (TYPE_BYTES), Base64 decoding failed: " + err.Error())
	}
	m.bytes = raw
	return nil
}

// readParts reads a body of two parts: the JSON of a message without its raw
// bytes, and these.
func (m *sentMessage) readParts(q page.Request) *wire.Error {
	_, params, err := mime.ParseMediaType(q.Kind)
	if err != nil {
		return badMultipart(err)
	}
	parts := multipart.NewReader(bytes.NewReader(q.Body), params["boundary"])
	resource, err := parts.NextRawPart()
	if err != nil {
		return badMultipart(err)
	}
	text, err := io.ReadAll(resource)
	if err != nil {
		return badMultipart(err)
	}
	if len(bytes.TrimSpace(text)) > 0 {
		if bad := m.readResource(text); bad != nil {
			return bad
		}
	}
	media, err := parts.NextRawPart()
	if err != nil {
		return badMultipart(err)
	}
	if m.bytes, err = io.ReadAll(media); err != nil {
		return badMultipart(err)
	}
	if coding := media.Header.Get("Content-Transfer-Encoding"); strings.EqualFold(coding, "base64") {
		m.bytes = decodeBase64(m.bytes)
	}
	return nil
}

func badMultipart(err error) *wire.Error {
	return wire.BadRequest("Malformed multipart body: " + err.Error())
}
