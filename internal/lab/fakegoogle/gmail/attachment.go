package gmail

import (
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	"headroom/internal/lab/fakegoogle/wire"
)

// attachmentPrefix begins every attachment id.
const attachmentPrefix = "ANGjdJ"

// attachmentKey begins the ids of the attachments of one view of a message. The
// next view has other ids, as at Google; those given out before stay good until
// [Mailbox.ExpireAttachmentIDs]. The caller holds the lock.
func (m *Mailbox) attachmentKey(messageID string) string {
	return fmt.Sprintf("%d/%d/%s", m.attachments, m.attachmentID.Add(1), messageID)
}

func attachmentID(key, partID string) string {
	return attachmentPrefix + base64.RawURLEncoding.EncodeToString([]byte(key+"/"+partID))
}

// attachmentPart returns the part that an attachment id names, if it is one of
// this message's and not dead.
func (m *Mailbox) attachmentPart(messageID, id string) (partID string, ok bool) {
	text, ok := strings.CutPrefix(id, attachmentPrefix)
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if !ok || err != nil {
		return "", false
	}
	fields := strings.Split(string(plain), "/")
	m.mu.RLock()
	defer m.mu.RUnlock()
	if len(fields) != 4 || fields[0] != fmt.Sprint(m.attachments) || fields[2] != messageID {
		return "", false
	}
	return fields[3], true
}

// getAttachment serves gmail.users.messages.attachments.get.
func (m *Mailbox) getAttachment(messageID, id string) (any, *wire.Error) {
	v, bad := m.find(messageID)
	if bad != nil {
		return nil, bad
	}
	partID, ok := m.attachmentPart(v.id, id)
	if !ok {
		return nil, wire.BadRequest("Invalid attachment token")
	}
	if c := v.content; c.fill > 0 && partID == childID("", largeAttachment) {
		return wire.Streamed{
			Answer: partBody{Size: c.fill * fillingDecoded, Data: wire.StreamMark},
			Stream: wire.Stream{Size: c.fill * fillingDecoded, Open: func() io.Reader {
				return base64.NewDecoder(base64.StdEncoding, &filling{blocks: c.fill}) // it passes over line ends
			}},
		}, nil
	}
	b := treeBuilder{want: &partID}
	b.part("", v.content.short(), 0)
	if !b.found {
		return nil, wire.BadRequest("Invalid attachment token")
	}
	return partBody{Size: len(b.data), Data: base64.URLEncoding.EncodeToString(b.data)}, nil
}
