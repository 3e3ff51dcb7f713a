package gmail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"headroom/internal/lab/fakegoogle/wire"
)

// Push is where notices of watched mailboxes go, like the push subscription of a
// Pub/Sub topic would. The topic's name is not looked at: every watch goes to the
// one subscription.
type Push struct {
	URL            string `json:"url"` // nothing is delivered while it is empty
	Audience       string `json:"audience"`
	ServiceAccount string `json:"service_account"`
	Subscription   string `json:"subscription"`
	// Duplicates is how many times more each notice is delivered than it must be.
	Duplicates int `json:"duplicates,omitempty"`
	// WatchLifeMS is how long a watch lasts that begins from now on; seven days if
	// zero.
	WatchLifeMS int64 `json:"watch_life_ms,omitempty"`
	// PublishEveryMS is the shortest time between two notices of one user; changes
	// in between are not published. A second if zero.
	PublishEveryMS int64 `json:"publish_every_ms,omitempty"`
}

// PushCounts counts notices.
type PushCounts struct {
	Published   int64 `json:"published"`
	Dropped     int64 `json:"dropped"`     // not published: one a second is all that a user gets
	Delivered   int64 `json:"delivered"`   // answered with success, duplicates too
	Redelivered int64 `json:"redelivered"` // attempts after one that had no success
	GivenUp     int64 `json:"given_up"`
}

const (
	pushAttempts    = 12
	pushFirstPause  = 100 * time.Millisecond // after a failed attempt; doubled by each
	pushLongestWait = 5 * time.Second
	pushesAtOnce    = 16
	mostWaiting     = 10_000 // notices; those beyond are given up
)

// A notice is a message of Pub/Sub.
type notice struct {
	user      string
	historyID uint64
	id        string
	at        time.Time
	attempts  int
}

// Publisher delivers notices, at least once each, to the URL of [Push].
type Publisher struct {
	life   context.Context
	token  func(Push) (string, error) // signs the token that comes with a push
	slots  chan struct{}              // one for each delivery under way
	client *http.Client

	mu      sync.Mutex
	push    Push
	counts  PushCounts
	serial  uint64
	waiting int
}

// NewPublisher makes a publisher that works until life ends. token signs what comes
// with each push.
func NewPublisher(life context.Context, token func(Push) (string, error)) *Publisher {
	return &Publisher{
		life: life, token: token, slots: make(chan struct{}, pushesAtOnce), serial: 7_000_000_000,
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second},
	}
}

// Set changes where notices go from now on.
func (p *Publisher) Set(push Push) error {
	if u, err := url.Parse(push.URL); push.URL != "" && (err != nil || u.Host == "") {
		return fmt.Errorf("set push: %q is no URL", push.URL)
	}
	if push.Duplicates < 0 || push.WatchLifeMS < 0 || push.PublishEveryMS < 0 {
		return errors.New("set push: numbers may not be negative")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.push = push
	return nil
}

// Pushed counts the notices so far.
func (p *Publisher) Pushed() PushCounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// Settings returns where notices go.
func (p *Publisher) Settings() Push {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.push
}

func (p *Publisher) lifetime() time.Duration {
	if ms := p.Settings().WatchLifeMS; ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return watchLife
}

func (p *Publisher) every() time.Duration {
	if ms := p.Settings().PublishEveryMS; ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return publishEvery
}

func (p *Publisher) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Dropped++
}

// publish takes a notice and returns at once.
func (p *Publisher) publish(user string, historyID uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Published++
	p.serial++
	if p.push.URL == "" {
		return
	}
	n := notice{user: user, historyID: historyID, id: strconv.FormatUint(p.serial, 10), at: time.Now()}
	for range 1 + p.push.Duplicates {
		if p.waiting == mostWaiting {
			p.counts.GivenUp++
			continue
		}
		p.waiting++
		go p.deliver(n)
	}
}

// deliver tries until the notice is taken.
func (p *Publisher) deliver(n notice) {
	defer p.count(func(*PushCounts) { p.waiting-- })
	for wait := pushFirstPause; ; wait = min(2*wait, pushLongestWait) {
		select {
		case p.slots <- struct{}{}:
		case <-p.life.Done():
			return
		}
		err := p.post(n)
		<-p.slots
		switch n.attempts++; {
		case err == nil:
			p.count(func(c *PushCounts) { c.Delivered++ })
			return
		case n.attempts == pushAttempts:
			p.count(func(c *PushCounts) { c.GivenUp++ })
			return
		case !wire.Pause(p.life, wait, nil):
			return
		}
		p.count(func(c *PushCounts) { c.Redelivered++ })
	}
}

func (p *Publisher) count(do func(*PushCounts)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do(&p.counts)
}

type pushEnvelope struct {
	Message      pushMessage `json:"message"`
	Subscription string      `json:"subscription"`
}

type pushMessage struct {
	Data         []byte    `json:"data"` // base64
	MessageID    string    `json:"messageId"`
	PublishTime  time.Time `json:"publishTime"`
	MessageID2   string    `json:"message_id"` // Pub/Sub sends both spellings
	PublishTime2 time.Time `json:"publish_time"`
}

// Envelope is the body of a push about a mailbox, for those who send their own.
func (p Push) Envelope(user string, historyID uint64, messageID string, at time.Time) ([]byte, error) {
	data, err := wire.EncodeJSON(struct {
		EmailAddress string `json:"emailAddress"`
		HistoryID    uint64 `json:"historyId"` // a number here, unlike in the API
	}{user, historyID})
	if err != nil {
		return nil, err
	}
	at = at.UTC()
	return wire.EncodeJSON(pushEnvelope{pushMessage{data, messageID, at, messageID, at}, p.Subscription})
}

// post makes one attempt.
func (p *Publisher) post(n notice) error {
	to := p.Settings()
	body, err := to.Envelope(n.user, n.historyID, n.id, n.at)
	if err != nil {
		return err
	}
	token, err := p.token(to)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(p.life, http.MethodPost, to.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("User-Agent", "CloudPubSub-Google")
	answer, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16))
	switch answer.StatusCode {
	case http.StatusProcessing, http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent:
		return nil
	}
	return fmt.Errorf("push answered with %s", answer.Status)
}
