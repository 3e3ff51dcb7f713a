package google

import (
	"bytes"
	"fmt"

	"headroom/jobs"
)

// attachmentsOf lists the parts of a message whose content must be fetched by itself,
// and the parts with a file name, whose content may stand in the message or be empty.
//
// A part is named by Google's id for it. If there is no id, as in a message that is
// just one attachment, the name is the part's position in the tree, "0" for the root.
// If an earlier part has the same name, a number follows it.
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

// attachment reports whether a part is an attachment. Its content is known if it
// stands in the message, or is empty.
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
			return a, false // the stored answer keeps it in any case
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
