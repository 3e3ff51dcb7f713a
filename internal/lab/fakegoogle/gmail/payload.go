package gmail

import (
	"bytes"
	"encoding/base64"
	"mime"
	"strconv"
	"strings"
)

// A payload is the tree of parts that formats full and metadata show.
type payload struct {
	PartID   *string     `json:"partId,omitempty"` // "" for the root, so it must not be dropped
	MimeType string      `json:"mimeType"`
	Filename *string     `json:"filename,omitempty"`
	Headers  []nameValue `json:"headers,omitempty"`
	Body     *partBody   `json:"body,omitempty"`
	Parts    []*payload  `json:"parts,omitempty"`
}

type nameValue struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type partBody struct {
	AttachmentID string `json:"attachmentId,omitempty"`
	Size         int    `json:"size"`
	Data         string `json:"data,omitempty"`
}

// deepest bounds the nesting of parts; what lies deeper is one leaf.
const deepest = 50

// fullPayload builds the tree of a message. However broken the mail, there is
// one: what cannot be read as parts is a leaf of text.
func fullPayload(key string, raw []byte) *payload {
	b := treeBuilder{key: key}
	return b.part("", raw, 0)
}

// largestInline is how much text stands in an answer of format full; a longer one
// is an attachment, as every part that is no text (the figure is unverified).
const largestInline = 256 << 10

// A treeBuilder makes the tree of a message, or looks for the data of one part.
type treeBuilder struct {
	key   string  // of the attachments' ids
	want  *string // part whose data is wanted, if any is
	data  []byte
	found bool
}

func (b *treeBuilder) part(partID string, raw []byte, depth int) *payload {
	head, body := splitMessage(raw)
	kind, params := mediaType(head)
	name := filename(head, params)
	p := &payload{PartID: &partID, MimeType: kind, Filename: &name, Headers: shownHeaders(head, nil), Body: &partBody{}}

	if boundary := params["boundary"]; strings.HasPrefix(kind, "multipart/") && boundary != "" && depth < deepest {
		for i, part := range splitParts(body, boundary) {
			p.Parts = append(p.Parts, b.part(childID(partID, i), part, depth+1))
		}
		return p
	}
	data := decodeTransfer(body, head.get("Content-Transfer-Encoding"))
	text := name == "" && (strings.HasPrefix(kind, "text/") || strings.HasPrefix(kind, "multipart/"))
	if text {
		data = toUTF8(data, params["charset"])
	}
	if b.want != nil && *b.want == partID {
		b.data, b.found = data, true
	}
	if text && len(data) <= largestInline {
		p.Body.Data = base64.URLEncoding.EncodeToString(data)
	} else {
		p.Body.AttachmentID = attachmentID(b.key, partID)
	}
	p.Body.Size = len(data)
	if kind == "message/rfc822" && depth < deepest {
		p.Parts = []*payload{b.part(childID(partID, 0), data, depth+1)}
	}
	return p
}

// childID numbers parts as Gmail does: children of the root "0", "1", theirs "0.1".
func childID(parent string, i int) string {
	if parent == "" {
		return strconv.Itoa(i)
	}
	return parent + "." + strconv.Itoa(i)
}

// splitParts cuts a multipart body at its boundary lines. A missing closing
// boundary ends the last part at the end of the body; the line end before a
// boundary belongs to the boundary.
func splitParts(body []byte, boundary string) [][]byte {
	var parts [][]byte
	delimiter := []byte("--" + boundary)
	start := -1 // of the part being read
	for at := 0; at < len(body); {
		line, rest := cutLine(body[at:])
		next := len(body) - len(rest)
		if after, ok := bytes.CutPrefix(line, delimiter); ok {
			after = bytes.TrimRight(after, " \t")
			closing := string(after) == "--"
			if closing || len(after) == 0 {
				if start >= 0 {
					parts = append(parts, trimLineEnd(body[start:max(at, start)]))
				}
				if start = next; closing {
					return parts
				}
			}
		}
		at = next
	}
	if start >= 0 && start < len(body) {
		parts = append(parts, body[start:])
	}
	return parts
}

func trimLineEnd(b []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
}

func filename(h header, params map[string]string) string {
	_, disposition, err := mime.ParseMediaType(h.get("Content-Disposition"))
	if err != nil {
		disposition = looseParams(h.get("Content-Disposition"))
	}
	if name := disposition["filename"]; name != "" {
		return decodeWords(name)
	}
	return decodeWords(params["name"])
}

// shownHeaders returns fields decoded, all of them or those named in only.
func shownHeaders(h header, only []string) []nameValue {
	var shown []nameValue
	for _, f := range h {
		if len(only) > 0 && !containsFold(only, f.name) {
			continue
		}
		shown = append(shown, nameValue{Name: strings.ToValidUTF8(f.name, "\uFFFD"), Value: decodeWords(f.value)})
	}
	return shown
}

func containsFold(names []string, name string) bool {
	for _, n := range names {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}
