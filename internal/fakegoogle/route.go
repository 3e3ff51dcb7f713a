package fakegoogle

import (
	"net/http"
	"net/url"
	"strings"
)

// The methods served, by their ids in Google's discovery document.
const (
	methodGetProfile   = "gmail.users.getProfile"
	methodLabelsList   = "gmail.users.labels.list"
	methodLabelsGet    = "gmail.users.labels.get"
	methodMessagesList = "gmail.users.messages.list"
	methodMessagesGet  = "gmail.users.messages.get"
	methodHistoryList  = "gmail.users.history.list"
)

// An operation is a request understood: a method, whose mailbox, and what answers.
type operation struct {
	method string
	userID string // from the path: "me" or an address
	id     string // of the message or label, where the path has one
	serve  func(*Mailbox, url.Values) (any, *apiError)
}

// route finds the operation of a request. Segments of the path are unescaped one
// by one, so an id may hold any character.
func route(r *http.Request) (operation, bool) {
	if r.Method != http.MethodGet {
		return operation{}, false
	}
	segments := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	for i, segment := range segments {
		plain, err := url.PathUnescape(segment)
		if err != nil {
			return operation{}, false
		}
		segments[i] = plain
	}
	if len(segments) < 5 || len(segments) > 6 || segments[0] != "gmail" || segments[1] != "v1" || segments[2] != "users" {
		return operation{}, false
	}
	op := operation{userID: segments[3]}
	if len(segments) == 6 {
		op.id = segments[5]
		if op.id == "" {
			return operation{}, false
		}
	}
	switch collection, one := segments[4], op.id != ""; {
	case collection == "profile" && !one:
		op.method, op.serve = methodGetProfile, (*Mailbox).getProfile
	case collection == "labels" && !one:
		op.method, op.serve = methodLabelsList, (*Mailbox).listLabels
	case collection == "labels":
		op.method = methodLabelsGet
		op.serve = func(m *Mailbox, _ url.Values) (any, *apiError) { return m.getLabel(op.id) }
	case collection == "messages" && !one:
		op.method, op.serve = methodMessagesList, (*Mailbox).listMessages
	case collection == "messages":
		op.method = methodMessagesGet
		op.serve = func(m *Mailbox, q url.Values) (any, *apiError) { return m.getMessage(op.id, q) }
	case collection == "history" && !one:
		op.method, op.serve = methodHistoryList, (*Mailbox).listHistory
	default:
		return operation{}, false
	}
	return op, true
}

// principal returns the mailbox of whoever is calling: the token's, or without
// one that of the address in the path, or the first. It returns nil for a token
// that means nobody.
func (s *Server) principal(r *http.Request, userID string) *Mailbox {
	authorization := r.Header.Get("Authorization")
	if authorization == "" {
		if box := s.Mailbox(userID); box != nil {
			return box
		}
		return s.firstMailbox()
	}
	token, ok := strings.CutPrefix(authorization, "Bearer ")
	if !ok {
		return nil
	}
	if user, ok := s.tokens.user(token); ok {
		return s.Mailbox(user)
	}
	return s.Mailbox(token)
}

// defaultProject is who is metered when no header names a project.
const defaultProject = "fake-project"

func project(r *http.Request) string {
	if p := r.Header.Get("X-Goog-User-Project"); p != "" {
		return p
	}
	return defaultProject
}
