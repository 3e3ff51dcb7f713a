package gmail

import (
	"math"
	"slices"
	"sort"
	"time"

	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

type profileAnswer struct {
	EmailAddress  string `json:"emailAddress"`
	MessagesTotal int    `json:"messagesTotal"`
	ThreadsTotal  int    `json:"threadsTotal"`
	HistoryID     uint64 `json:"historyId,string"`
}

// getProfile serves gmail.users.getProfile. The total has spam and trash in it,
// which a listing by default has not.
func (m *Mailbox) getProfile(q page.Request) (any, *wire.Error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	total := len(m.order)
	if q.Quirk.MessagesTotal != nil {
		total = *q.Quirk.MessagesTotal
	}
	return profileAnswer{
		EmailAddress: m.email, MessagesTotal: total, ThreadsTotal: len(m.byThread), HistoryID: m.history.last,
	}, nil
}

type messageList struct {
	Messages           []messageRef `json:"messages,omitempty"`
	NextPageToken      string       `json:"nextPageToken,omitempty"`
	ResultSizeEstimate *int         `json:"resultSizeEstimate,omitempty"`
}

// sizeEstimate is the estimated size of a listing with more pages. Google returns
// this figure whatever the mailbox holds, so clients should not rely on it.
const sizeEstimate = 201

// A listing is what the parameters of messages.list and threads.list choose.
type listing struct {
	labels []string
	query  query
	hidden bool // spam and trash are
}

// listingParams are those that choose, and that page tokens are bound to.
var listingParams = []string{"q", "labelIds", "includeSpamTrash"}

// newListing reads the parameters. The caller holds the lock.
func (m *Mailbox) newListing(q page.Request) (listing, *wire.Error) {
	zone, err := m.profile.location()
	if err != nil {
		return listing{}, wire.BadRequest(err.Error())
	}
	query, bad := parseQuery(q.Get("q"), searcher{zone: zone, looseSeconds: m.profile.LooseSeconds, now: time.Now()})
	if bad != nil {
		return listing{}, bad
	}
	spamTrash, bad := page.Bool(q.Values, "includeSpamTrash")
	if bad != nil {
		return listing{}, bad
	}
	labels := q.Values["labelIds"]
	for _, label := range labels {
		if m.deleted[label] && !slices.Contains(m.labelIDs(), label) {
			return listing{}, wire.BadRequest("Invalid label: " + label)
		}
	}
	hidden := !spamTrash && !query.reachesSpamTrash &&
		!slices.Contains(labels, "SPAM") && !slices.Contains(labels, "TRASH")
	return listing{labels: labels, query: query, hidden: hidden}, nil
}

func (l listing) shows(msg *message) bool {
	if l.hidden && (msg.has("SPAM") || msg.has("TRASH")) {
		return false
	}
	return hasAll(msg, l.labels) && l.query.matches(msg)
}

// newest is the place before every message.
var newest = page.Place{Position: math.MaxInt64, Within: math.MaxUint32}

func placeOf(msg *message) page.Place {
	return page.Place{Position: msg.internalDate, Within: msg.sequence}
}

// precedes reports whether a place in a list comes before a message.
func precedes(at page.Place, msg *message) bool {
	return byDate(msg, &message{internalDate: at.Position, sequence: at.Within}) < 0
}

// listMessages serves gmail.users.messages.list, newest first.
func (m *Mailbox) listMessages(q page.Request) (any, *wire.Error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	listing, bad := m.newListing(q)
	if bad != nil {
		return nil, bad
	}
	p, bad := m.newPager("messages", q, newest, listingParams...)
	if bad != nil {
		return nil, bad
	}
	var refs []messageRef
	var places []page.Place
	more := false
	order := m.sorted()
	end := sort.Search(len(order), func(i int) bool { return !precedes(p.After, order[i]) })
	for _, msg := range slices.Backward(order[:end]) {
		if !listing.shows(msg) {
			continue
		}
		if more = len(refs) == p.Limit; more {
			break
		}
		refs = append(refs, messageRef{ID: msg.id, ThreadID: msg.threadID})
		places = append(places, placeOf(msg))
	}
	var answer messageList
	answer.Messages, answer.NextPageToken = page.Cut(p, refs, places, more)
	answer.ResultSizeEstimate = estimate(q, len(answer.Messages), answer.NextPageToken)
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
