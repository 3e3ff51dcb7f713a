package gmail

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

// The methods served, by their ids in Google's discovery document.
const (
	methodGetProfile     = "gmail.users.getProfile"
	methodLabelsList     = "gmail.users.labels.list"
	methodLabelsGet      = "gmail.users.labels.get"
	methodMessagesList   = "gmail.users.messages.list"
	methodMessagesGet    = "gmail.users.messages.get"
	methodAttachmentsGet = "gmail.users.messages.attachments.get"
	methodThreadsList    = "gmail.users.threads.list"
	methodThreadsGet     = "gmail.users.threads.get"
	methodHistoryList    = "gmail.users.history.list"
	methodMessagesInsert = "gmail.users.messages.insert"
	methodMessagesImport = "gmail.users.messages.import"
)

// An Operation is a request understood: a method, whose mailbox, and what of it.
type Operation struct {
	Method string
	UserID string   // from the path: "me" or an address
	ids    []string // in the path: of the message, thread or label, and then of the attachment
	upload bool     // the body is, or has in it, the message itself
	Format string   // of a message or thread that is asked for; "" where none is named
}

// Route finds the operation of a request. Segments of the path are unescaped one
// by one, so an id may hold any character.
func Route(r *http.Request) (Operation, bool) {
	segments := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	for i, segment := range segments {
		plain, err := url.PathUnescape(segment)
		if err != nil {
			return Operation{}, false
		}
		segments[i] = plain
	}
	upload := segments[0] == "upload"
	if upload {
		segments = segments[1:]
	}
	if len(segments) < 5 || segments[0] != "gmail" || segments[1] != "v1" || segments[2] != "users" {
		return Operation{}, false
	}
	op := Operation{UserID: segments[3], upload: upload}
	what := segments[4:]
	if op.Method = posted[strings.Join(what, "/")]; op.Method != "" && r.Method == http.MethodPost {
		return op, !upload || slices.Contains(uploads, op.Method)
	}
	for i, segment := range what {
		if segment == "" {
			return Operation{}, false
		}
		if i%2 == 1 { // COLLECTION/ID/COLLECTION/ID
			what[i] = "ID"
			op.ids = append(op.ids, segment)
		}
	}
	op.Method = methods[strings.Join(what, "/")]
	if op.Method == methodMessagesGet || op.Method == methodThreadsGet {
		op.Format = strings.ToLower(r.URL.Query().Get("format"))
	}
	return op, op.Method != "" && r.Method == http.MethodGet && !upload
}

// methods are those served that are asked for by GET, by what follows the user in their paths.
var methods = map[string]string{
	"profile":                    methodGetProfile,
	"labels":                     methodLabelsList,
	"labels/ID":                  methodLabelsGet,
	"messages":                   methodMessagesList,
	"messages/ID":                methodMessagesGet,
	"messages/ID/attachments/ID": methodAttachmentsGet,
	"threads":                    methodThreadsList,
	"threads/ID":                 methodThreadsGet,
	"history":                    methodHistoryList,
}

// id is that of the message, thread or label; "" where the path has none.
func (op Operation) id() string {
	if len(op.ids) == 0 {
		return ""
	}
	return op.ids[0]
}

// Item is the id of the message or thread that a call asks for; "" where it asks for
// none.
func (op Operation) Item() string {
	switch op.Method {
	case methodMessagesGet, methodThreadsGet, methodAttachmentsGet:
		return op.id()
	}
	return ""
}

// whole reports whether the operation asks for whole messages.
func (op Operation) whole() bool {
	full := op.Format == "full" || op.Format == ""
	return op.Method == methodMessagesGet && (full || op.Format == "raw") || op.Method == methodThreadsGet && full
}

// Delivery returns the whole messages, with their raw sizes, that go out as the
// answer; nil where none do.
func (op Operation) Delivery(m *Mailbox) map[string]int {
	if !op.whole() {
		return nil
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if op.Method == methodThreadsGet {
		sizes := map[string]int{}
		for _, msg := range m.byThread[op.id()] {
			sizes[msg.id] = msg.content.size()
		}
		return sizes
	}
	size := 0 // it may have gone since
	if msg, ok := m.byID[op.id()]; ok {
		size = msg.content.size()
	}
	return map[string]int{op.id(): size}
}

// serve answers the operation.
func (op Operation) serve(m *Mailbox, q page.Request) (any, *wire.Error) {
	switch op.Method {
	case methodGetProfile:
		return m.getProfile(q)
	case methodLabelsList:
		return m.listLabels()
	case methodLabelsGet:
		return m.getLabel(op.id(), q)
	case methodMessagesList:
		return m.listMessages(q)
	case methodMessagesGet:
		return m.getMessage(op.id(), q)
	case methodAttachmentsGet:
		return m.getAttachment(op.id(), op.ids[1])
	case methodThreadsList:
		return m.listThreads(q)
	case methodThreadsGet:
		return m.getThread(op.id(), q)
	case methodHistoryList:
		return m.listHistory(q)
	case methodMessagesInsert, methodMessagesImport:
		return m.insertMessage(op, q)
	case methodWatch:
		return m.startWatch(q)
	case methodStop:
		return m.stopWatch()
	}
	return nil, wire.NotFound() // route knows no other method
}
