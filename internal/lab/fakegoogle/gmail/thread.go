package gmail

import (
	"slices"
	"strings"

	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

type threadList struct {
	Threads            []threadRef `json:"threads,omitempty"`
	NextPageToken      string      `json:"nextPageToken,omitempty"`
	ResultSizeEstimate *int        `json:"resultSizeEstimate,omitempty"`
}

type threadRef struct {
	ID        string `json:"id"`
	Snippet   string `json:"snippet"`
	HistoryID uint64 `json:"historyId,string"`
}

type threadAnswer struct {
	ID        string          `json:"id"`
	HistoryID uint64          `json:"historyId,string"`
	Messages  []messageAnswer `json:"messages,omitempty"`
}

// listThreads serves gmail.users.threads.list: the threads of which one message
// at least is chosen, by the newest of these.
func (m *Mailbox) listThreads(q page.Request) (any, *wire.Error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	listing, bad := m.newListing(q)
	if bad != nil {
		return nil, bad
	}
	p, bad := m.newPager("threads", q, newest, listingParams...)
	if bad != nil {
		return nil, bad
	}
	var refs []threadRef
	var places []page.Place
	more := false
	seen := map[string]bool{} // on this page, or on those before it
	for _, msg := range slices.Backward(m.sorted()) {
		if seen[msg.threadID] || !listing.shows(msg) {
			continue
		}
		seen[msg.threadID] = true
		if !precedes(p.After, msg) {
			continue
		}
		if more = len(refs) == p.Limit; more {
			break
		}
		refs = append(refs, m.threadRef(msg))
		places = append(places, placeOf(msg))
	}
	var answer threadList
	answer.Threads, answer.NextPageToken = page.Cut(p, refs, places, more)
	answer.ResultSizeEstimate = estimate(q, len(answer.Threads), answer.NextPageToken)
	return answer, nil
}

// threadRef lists the thread of a message, which lends it its snippet.
func (m *Mailbox) threadRef(msg *message) threadRef {
	ref := threadRef{ID: msg.threadID, Snippet: snippet(msg.content.start())}
	for _, other := range m.byThread[msg.threadID] {
		ref.HistoryID = max(ref.HistoryID, other.historyID)
	}
	return ref
}

// getThread serves gmail.users.threads.get: all messages of a thread, those in
// spam and trash too (unverified), oldest first. Threads have no raw format.
func (m *Mailbox) getThread(id string, q page.Request) (any, *wire.Error) {
	number, bad := idOf(id)
	if bad != nil {
		return nil, bad
	}
	format := strings.ToLower(q.Get("format"))
	if !slices.Contains([]string{"", "full", "metadata", "minimal"}, format) {
		return nil, invalidFormat(q.Get("format"))
	}
	m.mu.RLock()
	thread, ok := m.byThread[id]
	if !ok {
		thread = m.byThread[number]
	}
	views := make([]view, 0, len(thread))
	for _, msg := range thread {
		views = append(views, m.view(msg))
	}
	m.mu.RUnlock()
	if len(views) == 0 {
		return nil, wire.NotFound()
	}
	slices.SortFunc(views, func(a, b view) int { return byDate(&a.message, &b.message) })
	answer := threadAnswer{ID: views[0].threadID}
	for _, v := range views {
		answer.HistoryID = max(answer.HistoryID, v.historyID)
		answer.Messages = append(answer.Messages, v.answer(format, q.Values["metadataHeaders"]))
	}
	return answer, nil
}
