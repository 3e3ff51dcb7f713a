package fakegoogle

import (
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
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

// getMessage serves gmail.users.messages.get.
func (m *Mailbox) getMessage(id string, q url.Values) (any, *apiError) {
	number, err := strconv.ParseUint(id, 16, 64)
	if err != nil {
		return nil, badRequest("Invalid id value")
	}
	m.mu.RLock()
	msg, ok := m.byID[id]
	if !ok { // the same number, written otherwise
		msg, ok = m.byID[strconv.FormatUint(number, 16)]
	}
	var answer messageAnswer
	if ok {
		answer = messageAnswer{
			ID: msg.id, ThreadID: msg.threadID, LabelIDs: msg.labels,
			SizeEstimate: len(msg.raw), HistoryID: msg.historyID, InternalDate: msg.internalDate,
		}
	}
	m.mu.RUnlock()
	if !ok {
		return nil, notFound()
	}

	// Nothing below changes, so nasty mail is read without the lock.
	switch format := q.Get("format"); strings.ToLower(format) {
	case "raw":
		answer.Raw = base64.URLEncoding.EncodeToString(msg.raw)
		answer.Snippet = snippet(msg.raw)
	case "", "full":
		answer.Payload = fullPayload(msg.id, msg.raw)
		answer.Snippet = snippetOf(answer.Payload)
	case "metadata":
		kind, _ := mediaType(msg.head)
		answer.Payload = &payload{MimeType: kind, Headers: shownHeaders(msg.head, q["metadataHeaders"])}
		answer.Snippet = snippet(msg.raw)
	case "minimal":
		answer.Snippet = snippet(msg.raw)
	default:
		return nil, badRequest("Invalid value at 'format' (type.googleapis.com/google.apps.gmail.v1.MessageFormat), \"" + format + "\"")
	}
	return answer, nil
}

// snippetLength is how much text a snippet shows, in characters.
const snippetLength = 200

// snippetSource is how much of a message is read for its snippet, in bytes.
const snippetSource = 64 << 10

func snippet(raw []byte) string {
	return snippetOf(fullPayload("", raw[:min(len(raw), snippetSource)]))
}

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
