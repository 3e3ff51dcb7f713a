package google

import (
	"fmt"
	"strings"
	"time"

	"headroom/jobs"
)

// A message is Gmail's answer to a call for one, any field of which may be missing.
type message struct {
	ID           string   `json:"id"`
	ThreadID     string   `json:"threadId"`
	Labels       []string `json:"labelIds"`
	HistoryID    uint64   `json:"historyId,string"`
	InternalDate *int64   `json:"internalDate,string"` // ms since 1970
	SizeEstimate int64    `json:"sizeEstimate"`
	Raw          string   `json:"raw"`
	Payload      *part    `json:"payload"`
}

// neededOfMessage lists the fields without which it is unknown which message an answer
// is about, or how much of the message it holds.
var neededOfMessage = []string{"id", "raw"}

// A part is a part of a message in format full.
type part struct {
	ID       string   `json:"partId"`
	MimeType string   `json:"mimeType"`
	Filename string   `json:"filename"`
	Headers  []header `json:"headers"`
	Body     *body    `json:"body"`
	Parts    []*part  `json:"parts"`
}

type header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A body is the content of a part, or of an attachment.
type body struct {
	AttachmentID string `json:"attachmentId"`
	Size         *int64 `json:"size"`
	Data         string `json:"data"`
}

// size returns the stated length of the content; 0 if it is missing or impossible.
func (b *body) size() int64 {
	if b == nil || b.Size == nil {
		return 0
	}
	return max(*b.Size, 0)
}

// fetched returns what the answer tells of a message, besides its body.
func (m message) fetched() jobs.Fetched {
	f := jobs.Fetched{ID: m.ID, ThreadID: m.ThreadID, HistoryID: possible(m.HistoryID), SizeEstimate: max(m.SizeEstimate, 0)}
	for _, label := range m.Labels {
		if label != "" {
			f.Labels = append(f.Labels, label)
		}
	}
	if m.InternalDate != nil {
		f.InternalDate = time.UnixMilli(*m.InternalDate).UTC()
	}
	if m.Payload == nil {
		return f
	}
	for _, h := range m.Payload.Headers {
		if strings.EqualFold(h.Name, "Subject") {
			f.Subject = subjectOf(h.Value)
			break
		}
	}
	return f
}

// checkID checks that an answer is about the requested message. An answer without an
// id holds no message.
func (m message) checkID(asked string) error {
	switch m.ID {
	case asked:
		return nil
	case "":
		return errNoMessage
	}
	return fmt.Errorf("%w: asked for %s, got %s", errWrongID, asked, m.ID)
}
