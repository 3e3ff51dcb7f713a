package gmail

import (
	"regexp"
	"slices"
	"time"

	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

const (
	methodWatch = "gmail.users.watch"
	methodStop  = "gmail.users.stop"
)

// posted are the methods served that are asked for by POST, by what follows the
// user in their paths.
var posted = map[string]string{
	"watch":           methodWatch,
	"stop":            methodStop,
	"messages":        methodMessagesInsert,
	"messages/import": methodMessagesImport,
}

const (
	// watchLife is how long a watch lasts unless [Push] says otherwise.
	watchLife = 7 * 24 * time.Hour
	// publishEvery is the shortest time between two notices of one user unless
	// [Push] says otherwise.
	publishEvery = time.Second
)

// topicForm is how Google names a topic.
var topicForm = regexp.MustCompile(`^projects/[^/]+/topics/[^/]+$`)

// A watch publishes a mailbox's changes to a topic until it expires.
type watch struct {
	topic     string
	labels    []string // publish only changes of messages with one of these; all if empty
	exclude   bool     // publish changes of messages without them instead
	expires   time.Time
	published time.Time // when the last notice went out
}

type watchRequest struct {
	TopicName           string   `json:"topicName"`
	LabelIDs            []string `json:"labelIds"`
	LabelFilterBehavior string   `json:"labelFilterBehavior"`
	LabelFilterAction   string   `json:"labelFilterAction"` // its older name
}

type watchAnswer struct {
	HistoryID  uint64 `json:"historyId,string"`
	Expiration int64  `json:"expiration,string"` // ms since 1970
}

// startWatch serves gmail.users.watch. A watch takes the place of the one before
// it, and publishes a first notice at once (unverified).
func (m *Mailbox) startWatch(q page.Request) (any, *wire.Error) {
	var request watchRequest
	if err := wire.DecodeStrict(q.Body, &request); err != nil {
		return nil, wire.BadRequest("Invalid JSON payload received. " + err.Error())
	}
	behavior := request.LabelFilterBehavior
	if behavior == "" {
		behavior = request.LabelFilterAction
	}
	switch {
	case !topicForm.MatchString(request.TopicName):
		return nil, wire.BadRequest("Invalid topicName does not match projects/*/topics/*")
	case !slices.Contains([]string{"", "include", "exclude", "INCLUDE", "EXCLUDE"}, behavior):
		return nil, wire.BadRequest("Invalid value at 'label_filter_behavior', \"" + behavior + "\"")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w := &watch{
		topic: request.TopicName, labels: request.LabelIDs,
		exclude: behavior == "exclude" || behavior == "EXCLUDE",
		expires: time.Now().Add(m.publisher.lifetime()),
	}
	m.watch = w
	w.published = time.Now()
	m.publisher.publish(m.email, m.history.last)
	return watchAnswer{HistoryID: m.history.last, Expiration: w.expires.UnixMilli()}, nil
}

// stopWatch serves gmail.users.stop, which knows no mailbox without a watch.
func (m *Mailbox) stopWatch() (any, *wire.Error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watch = nil
	return wire.NoContent{}, nil
}

// tell publishes a change if the mailbox is watched. The caller holds the write lock.
func (m *Mailbox) tell(c change) {
	w := m.watch
	now := time.Now()
	switch {
	case w == nil, !now.Before(w.expires), !w.wants(c):
	case now.Before(w.published.Add(m.publisher.every())):
		m.publisher.drop()
	default:
		w.published = now
		m.publisher.publish(m.email, c.id)
	}
}

func (w *watch) wants(c change) bool {
	if len(w.labels) == 0 {
		return true
	}
	has := slices.ContainsFunc(w.labels, func(l string) bool {
		return slices.Contains(c.labels, l) || slices.Contains(c.labelChanges, l)
	})
	return has != w.exclude
}

// A WatchState is one mailbox's watch.
type WatchState struct {
	User    string    `json:"user"`
	Topic   string    `json:"topic"`
	Expires time.Time `json:"expires"`
}

// Watch returns the mailbox's watch, and false without one that lasts.
func (m *Mailbox) Watch() (WatchState, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.watch == nil || !time.Now().Before(m.watch.expires) {
		return WatchState{}, false
	}
	return WatchState{User: m.email, Topic: m.watch.topic, Expires: m.watch.expires}, true
}

// ExpireWatch ends the mailbox's watch as its time does, without a word to
// anybody.
func (m *Mailbox) ExpireWatch() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.watch != nil {
		m.watch.expires = time.Now()
	}
}
