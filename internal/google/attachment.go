package google

import (
	"bytes"
	"fmt"

	"headroom/jobs"
)

// attachmentsOf lists the parts of a message whose content comes by itself, and
// those with a file's name, whose content may stand in the message or be nothing.
//
// A part is named by Google's id for it. Where there is none, as of a message that
// is nothing but one attachment, it is its place in the tree, "0" for the root; and
// where an earlier part has the name, a number follows it.
func attachmentsOf(root *part) []jobs.Attachment {
	var found []jobs.Attachment
	taken := map[string]bool{}
	var walk func(p *part, place string)
	walk = func(p *part, place string) {
		if p == nil {
			return
		}
		if a, ok := p.attachment(); ok {
			name := p.ID
			if name == "" {
				name = orRoot(place)
			}
			a.Part = name
			for i := 2; taken[a.Part]; i++ {
				a.Part = fmt.Sprintf("%s-%d", name, i)
			}
			taken[a.Part] = true
			found = append(found, a)
		}
		for i, child := range p.Parts {
			if place == "" {
				walk(child, fmt.Sprint(i))
			} else {
				walk(child, fmt.Sprintf("%s.%d", place, i))
			}
		}
	}
	walk(root, "")
	return found
}

func orRoot(place string) string {
	if place == "" {
		return "0"
	}
	return place
}

// attachment reports whether a part is an attachment. Its content is at hand where
// it stands in the message, or is nothing.
func (p *part) attachment() (jobs.Attachment, bool) {
	a := jobs.Attachment{Filename: p.Filename, MimeType: p.MimeType, Size: p.Body.size()}
	switch b := p.Body; {
	case b != nil && b.AttachmentID != "" && b.Data == "":
		a.ID = b.AttachmentID
		return a, true
	case p.Filename == "":
		return a, false
	case b != nil && b.Data != "":
		content, err := decodeBase64(b.Data)
		if err != nil {
			return a, false // what Google gave is kept as a whole in any case
		}
		a.Content, a.Size = content, int64(len(content))
		return a, true
	case a.Size == 0 && len(p.Parts) == 0:
		a.Content = []byte{}
		return a, true
	}
	return a, false
}

// decodeBase64 decodes base64 as [base64Writer] does.
func decodeBase64(text string) ([]byte, error) {
	var content bytes.Buffer
	w := base64Writer{to: &content}
	if err := w.write([]byte(text)); err != nil {
		return nil, err
	}
	if err := w.close(); err != nil {
		return nil, err
	}
	return content.Bytes(), nil
}
