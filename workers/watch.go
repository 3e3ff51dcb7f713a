package workers

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"headroom/jobs"
	"headroom/quota"
)

// Watching says of which changes Google notifies us. The zero value: of none.
type Watching struct {
	Store   WatchStore // required with Topic or Address
	Topic   string     // of Pub/Sub, for changes of mailboxes; "": no notifications
	Address string     // URL for changes of calendars; "": no notifications
	Shown   string     // Address as it may be printed; "": as it is
}

// redact keeps the credentials of the address out of an error of Google's, which quotes
// what it refuses.
func (w Watching) redact(err error) error {
	if err == nil || w.Shown == "" || w.Shown == w.Address {
		return err
	}
	return &redactedError{strings.ReplaceAll(err.Error(), w.Address, w.Shown), err}
}

// A redactedError is an error with another text.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.err }

// Bounds of when a watch is renewed.
const (
	mailEvery    = 24 * time.Hour // as Google advises
	renewFrom    = 0.70           // share of a watch's life
	renewTo      = 0.85
	leastRenewal = time.Second // so that no renewal is due at once
	leastDeny    = time.Second

	// unsupportedFor is how long a calendar is left alone that Google does not watch,
	// such as one of holidays.
	unsupportedFor = 7 * 24 * time.Hour
	neverPushed    = "pushNotSupportedForRequestedResource"
	tokenBytes     = 32
	channelBytes   = 16
)

// renewal is when to renew a watch of so long a life: at random, so that those
// made together are not renewed together.
func renewal(kind jobs.WatchKind, life time.Duration) time.Duration {
	share := renewFrom + (renewTo-renewFrom)*mathrand.Float64()
	wait := time.Duration(float64(life) * share)
	if every := time.Duration(float64(mailEvery) * (0.9 + 0.2*mathrand.Float64())); kind == jobs.WatchMail && every < wait {
		return every
	}
	return max(wait, leastRenewal)
}

// renewWatch makes or renews the watch of the slice's mailbox when that is due. It
// comes before the history is read, so that no change falls between the two. If it
// fails, the sync continues, and the next one tries again.
func (y *syncRun) renewWatch(ctx context.Context) {
	box, able := y.box.(MailWatcher)
	if y.opts.Watching.Topic == "" || !able || y.stopping() {
		return
	}
	k := jobs.WatchKey{Account: y.job.Account, Kind: jobs.WatchMail}
	if due, err := y.opts.Watching.Store.WatchDue(ctx, k); err != nil || !due {
		y.logWatch(k, err)
		return
	}
	until, err := get(y.slice, nil, func(ctx context.Context) (time.Time, error) { return box.Watch(ctx, y.opts.Watching.Topic) })
	if err != nil {
		y.renewalFailed(ctx, k, err)
		return
	}
	life := max(0, until.Sub(y.now()))
	y.renewed(k, y.opts.Watching.Store.Renewed(ctx, y.ref, k, life, renewal(k.Kind, life)))
}

// renewalFailed writes down why a watch was not renewed, and reports whether other
// watches of the account may fare better: not where the answer is about the account,
// the project or their quota. A call that our own ledger did not admit has not failed.
func (s *slice) renewalFailed(ctx context.Context, k jobs.WatchKey, err error) (others bool) {
	if ctx.Err() != nil || s.calls.interrupted() || errors.Is(err, errNoTurn) {
		return false
	}
	outcome, wait := "failed", time.Duration(0)
	denied, isDenied := errors.AsType[*quota.DeniedError](err)
	answer, _ := errors.AsType[*jobs.CallError](err)
	switch {
	case isDenied:
		outcome, wait = "refused", max(denied.RetryAfter, leastDeny)
	case answer != nil && answer.Reason == neverPushed:
		outcome, wait = "unsupported", unsupportedFor
	default:
		s.log.Warn("a watch could not be renewed", s.logJob(zap.String("kind", string(k.Kind)), zap.Error(err))...)
	}
	s.metrics.renewals.WithLabelValues(string(k.Kind), outcome).Inc()
	s.logWatch(k, s.opts.Watching.Store.RenewalFailed(ctx, s.ref, k, clip(err.Error()), wait))
	return !resultOf(err, s.now()).stops()
}

func (s *slice) renewed(k jobs.WatchKey, err error) {
	if err != nil {
		s.logWatch(k, err)
		return
	}
	s.metrics.renewals.WithLabelValues(string(k.Kind), "ok").Inc()
}

// logWatch logs what could not be written down of a watch, if err is not nil: the
// slice's own writes will show whether the store is in trouble.
func (s *slice) logWatch(k jobs.WatchKey, err error) {
	if err != nil && !errors.Is(err, jobs.ErrStale) && !errors.Is(err, context.Canceled) {
		s.log.Warn("note of a watch", s.logJob(zap.String("kind", string(k.Kind)), zap.Error(err))...)
	}
}

// renewChannels replaces the channels of the account's calendars that are due, the new
// one first, and stops those that were replaced. It comes before the calendars are
// read, so that no change falls between the two.
func (c *calendarRun) renewChannels(ctx context.Context) {
	w := c.opts.Watching
	box, able := c.changes.(CalendarWatcher)
	if w.Address == "" || !able {
		return
	}
	tried := map[jobs.WatchKey]bool{} // one that is due again at once waits for the next slice
	for {
		due, err := w.Store.DueChannels(ctx, c.job.Account)
		c.logWatch(jobs.WatchKey{Kind: jobs.WatchCalendar}, err)
		due = slices.DeleteFunc(due, func(k jobs.WatchKey) bool { return tried[k] })
		if len(due) == 0 {
			break
		}
		for _, k := range due {
			tried[k] = true
			if c.stopping() || !c.openChannel(ctx, box, k) {
				return
			}
		}
	}
	c.stopChannels(ctx, box)
}

// openChannel makes one channel, and reports whether to try others.
func (c *calendarRun) openChannel(ctx context.Context, box CalendarWatcher, k jobs.WatchKey) (others bool) {
	store := c.opts.Watching.Store
	token := jobs.ChannelToken(random(tokenBytes), c.job.Account)
	hash := sha256.Sum256([]byte(token))
	ch := jobs.Channel{ID: jobs.ChannelMark + random(channelBytes), WatchKey: k, TokenHash: hash[:]}
	if err := store.AddChannel(ctx, c.ref, ch); err != nil {
		c.logWatch(k, err)
		return false
	}
	var until time.Time
	made := true
	err := c.call(nil, func(ctx context.Context) (err error) {
		ch.Resource, until, made, err = box.WatchCalendar(ctx, k.Calendar, ch.ID, token, c.opts.Watching.Address)
		return err
	})
	if err != nil {
		if !made {
			c.logWatch(k, store.DropChannel(ctx, c.ref, ch.ID))
		}
		return c.renewalFailed(ctx, k, fmt.Errorf("watch %q: %w", k.Calendar, c.opts.Watching.redact(err)))
	}
	life := max(0, until.Sub(c.now()))
	if err := store.ChannelMade(ctx, c.ref, ch, life, renewal(k.Kind, life)); err != nil {
		c.logWatch(k, err)
		return false
	}
	c.renewed(k, nil)
	c.pageRead()
	return true
}

// stopChannels ends the channels that were replaced. A channel that cannot be ended now
// is tried again by the next slice, until it ends by itself.
func (c *calendarRun) stopChannels(ctx context.Context, box CalendarWatcher) {
	store := c.opts.Watching.Store
	old, err := store.StoppableChannels(ctx, c.job.Account)
	c.logWatch(jobs.WatchKey{Kind: jobs.WatchCalendar}, err)
	for _, ch := range old {
		if c.stopping() {
			return
		}
		err := c.call(nil, func(ctx context.Context) error { return box.StopChannel(ctx, ch.ID, ch.Resource) })
		if err != nil {
			c.log.Debug("stop a channel", c.logJob(zap.String("channel", ch.ID), zap.Error(err))...)
			if _, denied := errors.AsType[*quota.DeniedError](err); denied || c.calls.interrupted() || errors.Is(err, errNoTurn) {
				return
			}
			continue
		}
		c.logWatch(ch.WatchKey, store.DropChannel(ctx, c.ref, ch.ID))
	}
}

// random is text of n random bytes.
func random(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}
