package gmail

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

type messageAnswer struct {
	ID           string   `json:"id"`
	ThreadID     string   `json:"threadId"`
	LabelIDs     []string `json:"labelIds,omitempty"`
	Snippet      string   `json:"snippet"`
	Payload      *payload `json:"payload,omitempty"`
	SizeEstimate int      `json:"sizeEstimate"`
	HistoryID    uint64   `json:"historyId,string"`
	InternalDate int64    `json:"internalDate,string"`
	Raw          string   `json:"raw,omitempty"`
}

// A view is a message as it was at one moment: it is read without the lock, so
// that hostile mail does not block other calls.
type view struct {
	message
	key string // of its attachments' ids
}

// view takes a view. The caller holds the lock, for reading at least.
func (m *Mailbox) view(msg *message) view { return view{message: *msg, key: m.attachmentKey(msg.id)} }

// find returns a view of a message by its id, or by the same number written
// otherwise.
func (m *Mailbox) find(id string) (view, *wire.Error) {
	number, bad := idOf(id)
	if bad != nil {
		return view{}, bad
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	msg, ok := m.byID[id]
	if !ok {
		msg, ok = m.byID[number]
	}
	if !ok {
		return view{}, wire.NotFound()
	}
	return m.view(msg), nil
}

// idOf reads the id of a message or thread, and returns it as the mailbox writes
// it.
func idOf(id string) (string, *wire.Error) {
	number, err := strconv.ParseUint(id, 16, 64)
	if err != nil {
		return "", wire.BadRequest("Invalid id value")
	}
	return strconv.FormatUint(number, 16), nil
}

func invalidFormat(format string) *wire.Error {
	return wire.BadRequest(fmt.Sprintf("Invalid value at 'format' (type.googleapis.com/google.apps.gmail.v1.MessageFormat), %q", format))
}

// getMessage serves gmail.users.messages.get.
func (m *Mailbox) getMessage(id string, q page.Request) (any, *wire.Error) {
	v, bad := m.find(id)
	if bad != nil {
		return nil, bad
	}
	switch format := strings.ToLower(q.Get("format")); format {
	case "raw":
		return v.raw(), nil
	case "", "full", "metadata", "minimal":
		return v.answer(format, q.Values["metadataHeaders"]), nil
	}
	return nil, invalidFormat(q.Get("format"))
}

// answer shows a message in any format but raw.
func (v view) answer(format string, headers []string) messageAnswer {
	answer := messageAnswer{
		ID: v.id, ThreadID: v.threadID, LabelIDs: v.labels,
		SizeEstimate: v.content.size(), HistoryID: v.historyID, InternalDate: v.internalDate,
	}
	switch format {
	case "", "full":
		answer.Payload = v.content.payload(v.key)
		answer.Snippet = snippetOf(answer.Payload)
		return answer
	case "metadata":
		kind, _ := mediaType(v.head)
		answer.Payload = &payload{MimeType: kind, Headers: shownHeaders(v.head, headers)}
	}
	answer.Snippet = snippet(v.content.start())
	return answer
}

// raw shows a message in format raw. A large one is not put together.
func (v view) raw() any {
	answer := v.answer("minimal", nil)
	if v.content.fill == 0 {
		answer.Raw = base64.URLEncoding.EncodeToString(v.content.short())
		return answer
	}
	answer.Raw = wire.StreamMark
	return wire.Streamed{Answer: answer, Stream: wire.Stream{Size: v.content.size(), Open: v.content.reader}}
}

// snippetLength is how much text a snippet shows, in characters.
const snippetLength = 200

// snippetSource is how much of a message is read for its snippet, in bytes.
const snippetSource = 64 << 10

func snippet(start []byte) string { return snippetOf(fullPayload("", start)) }

// snippetOf returns the start of the first text in the tree, on one line.
func snippetOf(p *payload) string {
	words := strings.Fields(firstText(p))
	var b strings.Builder
	for _, word := range words {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		if b.WriteString(word); b.Len() > snippetLength {
			break
		}
	}
	text := []rune(b.String())
	return string(text[:min(len(text), snippetLength)])
}

func firstText(p *payload) string {
	if p.MimeType == "text/plain" && p.Body.Data != "" {
		data, _ := base64.URLEncoding.DecodeString(p.Body.Data)
		return strings.ToValidUTF8(string(data), "\uFFFD")
	}
	for _, child := range p.Parts {
		if text := firstText(child); text != "" {
			return text
		}
	}
	return ""
}
