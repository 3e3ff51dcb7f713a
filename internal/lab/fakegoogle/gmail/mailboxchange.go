package gmail

import "fmt"

// A MailboxChange is the body of POST /_fake/mailbox. Its parts are done in the
// order of the fields.
type MailboxChange struct {
	User string `json:"user"` // the first mailbox if empty
	// MakeAnew comes before everything else.
	MakeAnew bool         `json:"make_anew,omitempty"`
	Profile  *Profile     `json:"habits,omitempty"`
	Add      []NewMessage `json:"add,omitempty"`
	// Churn is how many messages come and go again at once.
	Churn              int          `json:"churn,omitempty"`
	Delete             []string     `json:"delete,omitempty"`
	Relabel            []Relabeling `json:"relabel,omitempty"`
	Trash              []string     `json:"trash,omitempty"`
	Untrash            []string     `json:"untrash,omitempty"`
	Spam               []string     `json:"spam,omitempty"`
	EditDraft          []DraftEdit  `json:"edit_draft,omitempty"`
	DeleteLabel        []string     `json:"delete_label,omitempty"`
	ExpireHistory      bool         `json:"expire_history,omitempty"`
	ExpirePageTokens   bool         `json:"expire_page_tokens,omitempty"`
	ExpireAttachmentID bool         `json:"expire_attachment_ids,omitempty"`
	RevokeAccessToken  bool         `json:"revoke_access_tokens,omitempty"`
	Alias              []string     `json:"alias,omitempty"` // other addresses of the mailbox
}

// A NewMessage is a message to add: its bytes as text or, where they are no
// UTF-8, in base64; or its size alone, of a message that is made up.
type NewMessage struct {
	Raw       string   `json:"raw,omitempty"`
	RawBase64 []byte   `json:"raw_base64,omitempty"`
	Size      int      `json:"size,omitempty"`   // see [Mailbox.AddLarge]
	Labels    []string `json:"labels,omitempty"` // INBOX if none
}

func (m NewMessage) bytes() []byte {
	if m.RawBase64 != nil {
		return m.RawBase64
	}
	return []byte(m.Raw)
}

// A Relabeling changes the labels of one message.
type Relabeling struct {
	ID     string   `json:"id"`
	Add    []string `json:"add,omitempty"`
	Remove []string `json:"remove,omitempty"`
}

// A DraftEdit is another version of a draft.
type DraftEdit struct {
	ID        string `json:"id"` // of the message that it is now
	Raw       string `json:"raw,omitempty"`
	RawBase64 []byte `json:"raw_base64,omitempty"`
}

// A MailboxChanged answers POST /_fake/mailbox.
type MailboxChanged struct {
	Added     []string `json:"added"`            // ids, in the order given
	Edited    []string `json:"edited,omitempty"` // ids that drafts have now, in the order given
	Missing   []string `json:"missing"`          // ids to change, and labels to delete, that are not there
	HistoryID uint64   `json:"history_id"`
}

// mostMade bounds what one change makes up: the size of a message in bytes, and
// how many messages come and go.
const mostMade = 1 << 30

// Validate reports what is wrong with the change.
func (c MailboxChange) Validate() error {
	if c.Churn < 0 || c.Churn > mostMade/1000 {
		return fmt.Errorf("churn %d is not from 0 to %d", c.Churn, mostMade/1000)
	}
	for i, m := range c.Add {
		if m.Size != 0 && (m.Size < SmallestLarge || m.Size > mostMade || len(m.bytes()) > 0) {
			return fmt.Errorf("message %d to add: a size is from %d to %d and comes without bytes", i+1, SmallestLarge, mostMade)
		}
	}
	return nil
}

// Change does what concerns the mailbox alone.
func (m *Mailbox) Change(c MailboxChange) MailboxChanged {
	done := MailboxChanged{Added: []string{}, Missing: []string{}}
	if c.MakeAnew {
		m.MakeAnew()
	}
	for _, n := range c.Add {
		if n.Size > 0 {
			done.Added = append(done.Added, m.AddLarge(n.Size, n.Labels...))
			continue
		}
		done.Added = append(done.Added, m.Add(n.bytes(), n.Labels...))
	}
	m.Churn(c.Churn)
	each := func(ids []string, do func(id string) bool) {
		for _, id := range ids {
			if !do(id) {
				done.Missing = append(done.Missing, id)
			}
		}
	}
	each(c.Delete, m.Delete)
	for _, l := range c.Relabel {
		each([]string{l.ID}, func(id string) bool { return m.Relabel(id, l.Add, l.Remove) })
	}
	each(c.Trash, m.Trash)
	each(c.Untrash, m.Untrash)
	each(c.Spam, m.Spam)
	for _, d := range c.EditDraft {
		each([]string{d.ID}, func(id string) bool {
			edited, ok := m.EditDraft(id, NewMessage{Raw: d.Raw, RawBase64: d.RawBase64}.bytes())
			if ok {
				done.Edited = append(done.Edited, edited)
			}
			return ok
		})
	}
	each(c.DeleteLabel, m.DeleteLabel)
	if c.ExpireHistory {
		m.ExpireHistory()
	}
	if c.ExpirePageTokens {
		m.ExpirePageTokens()
	}
	if c.ExpireAttachmentID {
		m.ExpireAttachmentIDs()
	}
	done.HistoryID = m.HistoryID()
	return done
}

// A MailboxState answers GET /_fake/mailbox.
type MailboxState struct {
	User      string        `json:"user"`
	HistoryID uint64        `json:"history_id"`
	Messages  []MessageInfo `json:"messages"` // newest first, spam and trash too
}

// State returns what the mailbox holds.
func (m *Mailbox) State() MailboxState {
	return MailboxState{User: m.email, HistoryID: m.HistoryID(), Messages: m.Messages()}
}
