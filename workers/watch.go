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

// WatchStore keeps what Google is to tell of. Its methods are fenced as those of
// [Store] are.
type WatchStore interface {
	// WatchDue reports whether a watch is to be made or renewed now.
	WatchDue(ctx context.Context, k jobs.WatchKey) (bool, error)
	// Renewed notes that it was, for how long it lasts, and when to renew it.
	Renewed(ctx context.Context, ref jobs.TaskRef, k jobs.WatchKey, life, renew time.Duration) error
	// RenewalFailed notes that it could not be, and, of a call that was not let
	// through, how long to wait.
	RenewalFailed(ctx context.Context, ref jobs.TaskRef, k jobs.WatchKey, what string, wait time.Duration) error

	// DueChannels lists what is to be watched of an account's calendars now.
	DueChannels(ctx context.Context, account string) ([]jobs.WatchKey, error)
	// AddChannel notes a channel before Google is asked for it, and ChannelMade
	// that it is there: the one before it is to be stopped then.
	AddChannel(ctx context.Context, ref jobs.TaskRef, c jobs.Channel) error
	ChannelMade(ctx context.Context, ref jobs.TaskRef, c jobs.Channel, life, renew time.Duration) error
	// StoppableChannels lists channels to be stopped, and DropChannel forgets one
	// that is no more.
	StoppableChannels(ctx context.Context, account string) ([]jobs.Channel, error)
	DropChannel(ctx context.Context, ref jobs.TaskRef, id string) error
}

// Watching says what Google is made to tell of. The zero value: of nothing.
type Watching struct {
	Store   WatchStore // required with Topic or Address
	Topic   string     // of Pub/Sub, for changes of mailboxes; "": not told of
	Address string     // URL for changes of calendars; "": not told of
	Shown   string     // Address as it may be printed; "": as it is
}

// hide keeps the credentials of the address out of an error of Google's, which quotes
// what it does not like.
func (w Watching) hide(err error) error {
	if err == nil || w.Shown == "" || w.Shown == w.Address {
		return err
	}
	return &hiddenError{strings.ReplaceAll(err.Error(), w.Address, w.Shown), err}
}

// A hiddenError is an error with another text.
type hiddenError struct {
	text string
	err  error
}

func (e *hiddenError) Error() string { return e.text }
func (e *hiddenError) Unwrap() error { return e.err }

// A MailWatcher is a [Mailbox] that can be watched.
type MailWatcher interface {
	// Watch makes Google tell a topic of changes until the moment that it returns.
	Watch(ctx context.Context, topic string) (until time.Time, err error)
}

// A CalendarWatcher is a [Calendar] that can be watched.
type CalendarWatcher interface {
	// WatchCalendar makes Google tell an address of changes of a calendar, or,
	// for an empty id, of the list, until the moment that it returns. Made is
	// false when it is sure that there is no such channel.
	WatchCalendar(ctx context.Context, calendar, id, token, address string) (resource string, until time.Time, made bool, err error)
	// StopChannel ends a channel; one that is not there is no error.
	StopChannel(ctx context.Context, id, resource string) error
}

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

// watchMail makes or renews the watch of the slice's mailbox when that is due. It
// comes before the history is read, so that no change falls between the two. A sync
// does without where it fails: the next looks again.
func (s *slice) watchMail(ctx, calls context.Context) {
	box, able := s.box.(MailWatcher)
	if s.opts.Watching.Topic == "" || !able || s.stopping() {
		return
	}
	k := jobs.WatchKey{Account: s.job.Account, Kind: jobs.WatchMail}
	if due, err := s.opts.Watching.Store.WatchDue(ctx, k); err != nil || !due {
		s.watchTrouble(k, err)
		return
	}
	var until time.Time
	err := s.call(calls, nil, func(ctx context.Context) (err error) {
		until, err = box.Watch(ctx, s.opts.Watching.Topic)
		return err
	})
	if err != nil {
		s.notRenewed(ctx, calls, k, err)
		return
	}
	life := max(0, time.Until(until))
	s.renewed(k, s.opts.Watching.Store.Renewed(ctx, s.ref, k, life, renewal(k.Kind, life)))
}

// notRenewed writes down why a watch was not renewed, and reports whether other
// watches of the account may fare better: not where the answer is about the account,
// the project or their quota. One that our own ledger did not let through has not
// failed.
func (s *slice) notRenewed(ctx, calls context.Context, k jobs.WatchKey, err error) (goOn bool) {
	if ctx.Err() != nil || interrupted(calls) || errors.Is(err, errNoTurn) {
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
		s.log.Warn("a watch could not be renewed", append(logJob(s.job), zap.String("kind", string(k.Kind)), zap.Error(err))...)
	}
	s.metrics.renewals.WithLabelValues(string(k.Kind), outcome).Inc()
	s.watchTrouble(k, s.opts.Watching.Store.RenewalFailed(ctx, s.ref, k, clip(err.Error()), wait))
	return endingOf(err, time.Now()) == nil
}

func (s *slice) renewed(k jobs.WatchKey, err error) {
	if err != nil {
		s.watchTrouble(k, err)
		return
	}
	s.metrics.renewals.WithLabelValues(string(k.Kind), "ok").Inc()
}

// watchTrouble logs what could not be written down of a watch: the slice's own
// writes will tell whether the store is in trouble.
func (s *slice) watchTrouble(k jobs.WatchKey, err error) {
	if err != nil && !errors.Is(err, jobs.ErrStale) && !errors.Is(err, context.Canceled) {
		s.log.Warn("note of a watch", append(logJob(s.job), zap.String("kind", string(k.Kind)), zap.Error(err))...)
	}
}

// watch replaces the channels of the account's calendars that are due, the new one
// first, and stops those that were replaced. It comes before they are read, so that
// no change falls between the two.
func (r *calendarRun) watch() {
	w := r.opts.Watching
	box, able := r.changes.(CalendarWatcher)
	if w.Address == "" || !able {
		return
	}
	tried := map[jobs.WatchKey]bool{} // one that is due again at once waits for the next slice
	for {
		due, err := w.Store.DueChannels(r.ctx, r.job.Account)
		r.watchTrouble(jobs.WatchKey{Kind: jobs.WatchCalendar}, err)
		due = slices.DeleteFunc(due, func(k jobs.WatchKey) bool { return tried[k] })
		if len(due) == 0 {
			break
		}
		for _, k := range due {
			tried[k] = true
			if r.stopping() || !r.openChannel(box, k) {
				return
			}
		}
	}
	r.stopChannels(box)
}

// openChannel makes one channel, and reports whether to go on with others.
func (r *calendarRun) openChannel(box CalendarWatcher, k jobs.WatchKey) (goOn bool) {
	store := r.opts.Watching.Store
	token := jobs.ChannelToken(random(tokenBytes), r.job.Account)
	hash := sha256.Sum256([]byte(token))
	c := jobs.Channel{ID: jobs.ChannelMark + random(channelBytes), WatchKey: k, TokenHash: hash[:]}
	if err := store.AddChannel(r.ctx, r.ref, c); err != nil {
		r.watchTrouble(k, err)
		return false
	}
	var until time.Time
	made := true
	err := r.call(r.calls, nil, func(ctx context.Context) (err error) {
		c.Resource, until, made, err = box.WatchCalendar(ctx, k.Calendar, c.ID, token, r.opts.Watching.Address)
		return err
	})
	if err != nil {
		if !made {
			r.watchTrouble(k, store.DropChannel(r.ctx, r.ref, c.ID))
		}
		return r.notRenewed(r.ctx, r.calls, k, fmt.Errorf("watch %q: %w", k.Calendar, r.opts.Watching.hide(err)))
	}
	life := max(0, time.Until(until))
	if err := store.ChannelMade(r.ctx, r.ref, c, life, renewal(k.Kind, life)); err != nil {
		r.watchTrouble(k, err)
		return false
	}
	r.renewed(k, nil)
	r.progressed()
	return true
}

// stopChannels ends what was replaced. What cannot be ended now is tried again by
// the next slice, until it ends by itself.
func (r *calendarRun) stopChannels(box CalendarWatcher) {
	store := r.opts.Watching.Store
	old, err := store.StoppableChannels(r.ctx, r.job.Account)
	r.watchTrouble(jobs.WatchKey{Kind: jobs.WatchCalendar}, err)
	for _, c := range old {
		if r.stopping() {
			return
		}
		err := r.call(r.calls, nil, func(ctx context.Context) error { return box.StopChannel(ctx, c.ID, c.Resource) })
		if err != nil {
			r.log.Debug("stop a channel", append(logJob(r.job), zap.String("channel", c.ID), zap.Error(err))...)
			if _, denied := errors.AsType[*quota.DeniedError](err); denied || interrupted(r.calls) || errors.Is(err, errNoTurn) {
				return
			}
			continue
		}
		r.watchTrouble(c.WatchKey, store.DropChannel(r.ctx, r.ref, c.ID))
	}
}

// random is text of n random bytes.
func random(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}
