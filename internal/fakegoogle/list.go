package fakegoogle

import (
	"net/url"
	"slices"
	"sort"
)

type profile struct {
	EmailAddress  string `json:"emailAddress"`
	MessagesTotal int    `json:"messagesTotal"`
	ThreadsTotal  int    `json:"threadsTotal"`
	HistoryID     uint64 `json:"historyId,string"`
}

// getProfile serves gmail.users.getProfile. The total has spam and trash in it,
// which a listing by default has not.
func (m *Mailbox) getProfile(url.Values) (any, *apiError) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	threads := map[string]bool{}
	for _, msg := range m.order {
		threads[msg.threadID] = true
	}
	return profile{
		EmailAddress: m.email, MessagesTotal: len(m.order), ThreadsTotal: len(threads), HistoryID: m.history.last,
	}, nil
}

type messageList struct {
	Messages           []messageRef `json:"messages,omitempty"`
	NextPageToken      string       `json:"nextPageToken,omitempty"`
	ResultSizeEstimate int          `json:"resultSizeEstimate"`
}

// sizeEstimate is what a listing with more pages says of its size. Google's
// figure is famously this one whatever the mailbox holds, so nobody should lean
// on it.
const sizeEstimate = 201

// listMessages serves gmail.users.messages.list, newest first.
func (m *Mailbox) listMessages(q url.Values) (any, *apiError) {
	limit, bad := maxResults(q)
	if bad != nil {
		return nil, bad
	}
	query, bad := parseQuery(q.Get("q"))
	if bad != nil {
		return nil, bad
	}
	spamTrash, bad := boolParam(q, "includeSpamTrash")
	if bad != nil {
		return nil, bad
	}
	labels := q["labelIds"]
	hidden := !spamTrash && !query.reachesSpamTrash &&
		!slices.Contains(labels, "SPAM") && !slices.Contains(labels, "TRASH")

	m.mu.Lock()
	defer m.mu.Unlock()
	order := m.sorted()
	end := len(order)
	binding := m.bind("messages", q, "q", "labelIds", "includeSpamTrash")
	if token := q.Get("pageToken"); token != "" {
		after, ok := parsePageToken(token, binding)
		if !ok {
			return nil, badRequest("Invalid pageToken")
		}
		at := &message{internalDate: after.position, sequence: after.sequence}
		end = sort.Search(len(order), func(i int) bool { return byDate(order[i], at) >= 0 })
	}

	var answer messageList
	var last *message
	for _, msg := range slices.Backward(order[:end]) {
		if hidden && (msg.has("SPAM") || msg.has("TRASH")) {
			continue
		}
		if !hasAll(msg, labels) || !query.matches(msg) {
			continue
		}
		if len(answer.Messages) == limit {
			answer.NextPageToken = pageToken{position: last.internalDate, sequence: last.sequence}.encode(binding)
			break
		}
		answer.Messages = append(answer.Messages, messageRef{ID: msg.id, ThreadID: msg.threadID})
		last = msg
	}
	answer.ResultSizeEstimate = len(answer.Messages)
	if answer.NextPageToken != "" {
		answer.ResultSizeEstimate = sizeEstimate
	}
	return answer, nil
}

func hasAll(msg *message, labels []string) bool {
	for _, label := range labels {
		if !msg.has(label) {
			return false
		}
	}
	return true
}

func boolParam(q url.Values, name string) (bool, *apiError) {
	switch q.Get(name) {
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return true, nil
	}
	return false, badRequest("Invalid value at '" + name + "' (TYPE_BOOL), \"" + q.Get(name) + "\"")
}
