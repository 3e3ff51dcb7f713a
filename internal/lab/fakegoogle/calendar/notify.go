package calendar

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// A NotifyProfile is how channels notify of changes. With the zero value each change
// is notified once and at once. All times are real.
type NotifyProfile struct {
	Drop      bool `json:"drop,omitempty"`       // no notification is sent
	Duplicate bool `json:"duplicate,omitempty"`  // each notification is sent twice, with the same number
	DelayMS   int  `json:"delay_ms,omitempty"`   // before a notification is sent
	LifeMS    int  `json:"life_ms,omitempty"`    // the longest a channel lasts; seven days if zero
	KeepQuiet bool `json:"keep_quiet,omitempty"` // only the first notification, of state sync, is sent
}

// A NotifyReport counts notifications. GET /_fake/notifications returns it.
type NotifyReport struct {
	Profile  NotifyProfile `json:"habits"`
	Channels []ChannelInfo `json:"channels"` // that are open
	Sent     int64         `json:"sent"`     // messages that were answered 2xx, or 102
	Failed   int64         `json:"failed"`   // that were not, at any try
	Dropped  int64         `json:"dropped"`  // that were not tried: by the profile, or because too many waited
	Waiting  int           `json:"waiting"`  // to be sent
}

// A ChannelInfo is an open channel.
type ChannelInfo struct {
	ID         string    `json:"id"`
	ResourceID string    `json:"resource_id"`
	Account    string    `json:"account"`
	Calendar   string    `json:"calendar,omitempty"` // none for the list of calendars
	Address    string    `json:"address"`
	Expires    time.Time `json:"expires"`
	Messages   int64     `json:"messages"` // the number of the last one
}

const (
	notifyWorkers = 4
	mostNotified  = 10_000 // messages
	notifyTimeout = 10 * time.Second
	notifyTries   = 3
	notifyBackoff = time.Second // before the second try; it doubles
)

// A notification is one message of a channel.
type notification struct {
	channel *channel
	state   string
	number  int64
	due     time.Time
}

// Channels are the open channels and the notifications that they have to send. Its
// goroutines run only while there are some.
type Channels struct {
	client *http.Client
	ctx    context.Context // ends when the server closes
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu      sync.Mutex
	profile NotifyProfile
	opened  []*channel
	queue   []notification
	workers int
	closed  bool

	sent, failed, dropped int64
}

// NewChannels makes a list without channels. Stop it.
func NewChannels() *Channels {
	ctx, cancel := context.WithCancel(context.Background())
	return &Channels{
		ctx: ctx, cancel: cancel,
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: notifyTimeout},
	}
}

// open adds a channel and sends its first notification; false where its id is taken.
func (n *Channels) open(c *channel) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forgetExpired()
	if slices.ContainsFunc(n.opened, func(o *channel) bool { return o.id == c.id }) {
		return false
	}
	n.opened = append(n.opened, c)
	n.enqueue(c, "sync")
	return true
}

// close ends a channel, and reports whether there was one.
func (n *Channels) close(account, id, resourceID string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forgetExpired()
	before := len(n.opened)
	n.opened = slices.DeleteFunc(n.opened, func(c *channel) bool {
		return c.account == account && c.id == id && c.resourceID == resourceID
	})
	return len(n.opened) < before
}

func (n *Channels) forgetExpired() {
	now := time.Now()
	n.opened = slices.DeleteFunc(n.opened, func(c *channel) bool { return !now.Before(c.expires) })
}

// changed notifies every channel of a calendar, or of a list of calendars.
func (n *Channels) changed(account, calendar string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.opened) == 0 {
		return
	}
	n.forgetExpired()
	for _, c := range n.opened {
		if c.account == account && c.calendar == calendar {
			n.enqueue(c, "exists")
		}
	}
}

// enqueue has a message sent. The caller holds the lock.
func (n *Channels) enqueue(c *channel, state string) {
	c.number++
	times := 1
	if n.profile.Duplicate {
		times = 2
	}
	message := notification{channel: c, state: state, number: c.number, due: time.Now().Add(time.Duration(n.profile.DelayMS) * time.Millisecond)}
	for range times {
		if n.profile.Drop || n.profile.KeepQuiet && state != "sync" || n.closed || len(n.queue) >= mostNotified {
			n.dropped++
			continue
		}
		n.queue = append(n.queue, message)
		if n.workers < notifyWorkers {
			n.workers++
			n.group.Go(n.work)
		}
	}
}

// work sends messages until none waits.
func (n *Channels) work() {
	for {
		n.mu.Lock()
		if len(n.queue) == 0 || n.closed {
			n.workers--
			n.mu.Unlock()
			return
		}
		message := n.queue[0]
		n.queue = n.queue[1:]
		n.mu.Unlock()

		err := n.deliver(message)
		n.mu.Lock()
		if err == nil {
			n.sent++
		} else {
			n.failed++
		}
		n.mu.Unlock()
	}
}

var errRefused = errors.New("the receiver answered with an error")

// deliver sends a message, again where the receiver is in trouble.
func (n *Channels) deliver(m notification) error {
	if err := n.sleep(time.Until(m.due)); err != nil {
		return err
	}
	for try := 1; ; try++ {
		again, err := n.send(m)
		if err == nil || !again || try == notifyTries {
			return err
		}
		if err := n.sleep(notifyBackoff << (try - 1)); err != nil {
			return err
		}
	}
}

// sleep passes d unless the server closes.
func (n *Channels) sleep(d time.Duration) error {
	if d <= 0 {
		return n.ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-n.ctx.Done():
		return n.ctx.Err()
	}
}

// send makes the request of a message, which has no body. again says that a later
// try may do.
func (n *Channels) send(m notification) (again bool, err error) {
	r, err := http.NewRequestWithContext(n.ctx, http.MethodPost, m.channel.address, http.NoBody)
	if err != nil {
		return false, err
	}
	h := r.Header
	h.Set("User-Agent", "APIs-Google; (+https://developers.google.com/webmasters/APIs-Google.html)")
	h.Set("X-Goog-Channel-ID", m.channel.id)
	h.Set("X-Goog-Channel-Expiration", m.channel.expires.UTC().Format(http.TimeFormat))
	h.Set("X-Goog-Message-Number", strconv.FormatInt(m.number, 10))
	h.Set("X-Goog-Resource-ID", m.channel.resourceID)
	h.Set("X-Goog-Resource-State", m.state)
	h.Set("X-Goog-Resource-URI", m.channel.resourceURI)
	if m.channel.token != "" {
		h.Set("X-Goog-Channel-Token", m.channel.token)
	}
	resp, err := n.client.Do(r)
	if err != nil {
		return true, err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	_ = resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent, http.StatusProcessing:
		return false, nil
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true, errRefused
	}
	return false, errRefused
}

// Stop ends what is being sent and waits for it.
func (n *Channels) Stop() {
	n.cancel()
	n.mu.Lock()
	n.closed, n.queue = true, nil
	n.mu.Unlock()
	n.group.Wait()
}

// SetProfile changes how channels notify from now on.
func (n *Channels) SetProfile(h NotifyProfile) error {
	if h.DelayMS < 0 || h.LifeMS < 0 {
		return errors.New("set habits of channels: numbers may not be negative")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.profile = h
	return nil
}

// Lapse lets every channel end without a word, as expiry does.
func (n *Channels) Lapse() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.opened = nil
}

// Report lists the open channels and counts their notifications.
func (n *Channels) Report() NotifyReport {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forgetExpired()
	r := NotifyReport{Profile: n.profile, Channels: []ChannelInfo{}, Sent: n.sent, Failed: n.failed, Dropped: n.dropped, Waiting: len(n.queue)}
	for _, c := range n.opened {
		r.Channels = append(r.Channels, ChannelInfo{
			ID: c.id, ResourceID: c.resourceID, Account: c.account, Calendar: c.calendar,
			Address: c.address, Expires: c.expires.UTC(), Messages: c.number,
		})
	}
	return r
}
