package memstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"headroom/jobs"
)

// channel is a channel with the number of the last message that came on it.
type channel struct {
	jobs.Channel
	last uint64
}

const (
	channelLife = 8 * 24 * time.Hour // of a channel of which nobody knows when it ends
	mostStrays  = 10                 // of an account
)

// watch is a watch of the account; one that was never made is in state none.
func (a *account) watch(k jobs.WatchKey) jobs.Watch {
	k.Account = a.Email
	if w := a.watches[k]; w != nil {
		return *w
	}
	return jobs.Watch{WatchKey: k, State: jobs.WatchNone}
}

func (a *account) saveWatch(w jobs.Watch) {
	w.Account, w.LastError = a.Email, clean(w.LastError)
	w.LastPushAt = a.watch(w.WatchKey).LastPushAt
	a.watches[w.WatchKey] = &w
}

// Watch returns one watch. One that was never made is in state none.
func (s *Store) Watch(ctx context.Context, k jobs.WatchKey) (w jobs.Watch, err error) {
	err = s.do(ctx, func(time.Time) error {
		w = jobs.Watch{WatchKey: k, State: jobs.WatchNone}
		if a := s.accounts[jobs.FoldAddress(k.Account)]; a != nil {
			w = a.watch(k)
		}
		return nil
	})
	return w, err
}

// WatchDue is [jobs.Watch.Due] in the store.
func (s *Store) WatchDue(ctx context.Context, k jobs.WatchKey) (due bool, err error) {
	w, err := s.Watch(ctx, k)
	if err != nil {
		return false, err
	}
	err = s.do(ctx, func(now time.Time) error {
		due = w.Due(now)
		return nil
	})
	return due, err
}

// Renewed records that Google watches something for life from now on, and that this is to
// be renewed in renew.
func (s *Store) Renewed(ctx context.Context, ref jobs.TaskRef, k jobs.WatchKey, life, renew time.Duration) error {
	_, err := s.owned(ctx, ref, "record a watch", func(_ *job, a *account, now time.Time) error {
		a.saveWatch(jobs.NewWatch(k, "", now, life, renew))
		return nil
	})
	return err
}

// RenewalFailed is [jobs.Watch.Fail] in the store.
func (s *Store) RenewalFailed(ctx context.Context, ref jobs.TaskRef, k jobs.WatchKey, what string, wait time.Duration) error {
	_, err := s.owned(ctx, ref, "record a watch", func(_ *job, a *account, now time.Time) error {
		w := a.watch(k)
		w.Fail(what, wait, now)
		a.saveWatch(w)
		return nil
	})
	return err
}

// askForWatches asks for the syncs that renew what is due of an account's watches.
func (s *Store) askForWatches(a *account, now time.Time) (asked bool) {
	mail := a.watch(jobs.WatchKey{Kind: jobs.WatchMail})
	if slices.Contains(s.opts.Watched, jobs.WatchMail) && mail.Due(now) {
		asked = s.askMail(a, now)
	}
	if slices.Contains(s.opts.Watched, jobs.WatchCalendar) && len(a.dueChannels(now)) > 0 {
		asked = s.askCalendars(a, false, now) || asked
	}
	return asked
}

// watchable reports whether a calendar can be watched: not one that is in trouble.
func (a *account) watchable(id string) bool {
	c := a.calendars[id]
	return c != nil && (c.State == jobs.CalendarNew || c.State == jobs.CalendarSynced || c.State == jobs.CalendarExpired)
}

func (a *account) dueChannels(now time.Time) (due []jobs.WatchKey) {
	keys := []jobs.WatchKey{{Account: a.Email, Kind: jobs.WatchCalendarList}}
	if a.list == nil {
		keys = nil
	}
	for _, id := range slices.Sorted(maps.Keys(a.calendars)) {
		if a.watchable(id) {
			keys = append(keys, jobs.WatchKey{Account: a.Email, Kind: jobs.WatchCalendar, Calendar: id})
		}
	}
	for _, k := range keys {
		if w := a.watch(k); w.Due(now) {
			due = append(due, k)
		}
	}
	return due
}

// DueChannels returns what is to be watched of an account's calendars and is not, or not
// for much longer.
func (s *Store) DueChannels(ctx context.Context, email string) (due []jobs.WatchKey, err error) {
	err = s.do(ctx, func(now time.Time) error {
		if a := s.accounts[jobs.FoldAddress(email)]; a != nil {
			due = a.dueChannels(now)
		}
		return nil
	})
	return due, err
}

// replace marks the account's channels for a watch that are in a state as replaced.
func (s *Store) replace(a *account, k jobs.WatchKey, state jobs.ChannelState) {
	k.Account = a.Email
	for _, c := range s.channels {
		if c.WatchKey == k && c.State == state {
			c.State = jobs.ChannelReplaced
		}
	}
}

// AddChannel records a channel before Google is asked for it.
func (s *Store) AddChannel(ctx context.Context, ref jobs.TaskRef, c jobs.Channel) error {
	_, err := s.owned(ctx, ref, "add a channel", func(_ *job, a *account, now time.Time) error {
		s.replace(a, c.WatchKey, jobs.ChannelPending)
		c.Account, c.Resource, c.State, c.ExpiresAt = a.Email, "", jobs.ChannelPending, now.Add(channelLife)
		s.channels[c.ID] = &channel{Channel: c}
		return nil
	})
	return err
}

// ChannelMade records that Google has made a channel. The one before it is to be stopped.
func (s *Store) ChannelMade(ctx context.Context, ref jobs.TaskRef, c jobs.Channel, life, renew time.Duration) error {
	_, err := s.owned(ctx, ref, "record a channel", func(_ *job, a *account, now time.Time) error {
		s.replace(a, c.WatchKey, jobs.ChannelActive)
		if made := s.channels[c.ID]; made != nil {
			made.State, made.Resource, made.ExpiresAt = jobs.ChannelActive, clean(c.Resource), now.Add(life)
		}
		a.saveWatch(jobs.NewWatch(c.WatchKey, c.ID, now, life, renew))
		return nil
	})
	return err
}

// DropChannel forgets a channel, and the watch that goes by it.
func (s *Store) DropChannel(ctx context.Context, ref jobs.TaskRef, id string) error {
	_, err := s.owned(ctx, ref, "drop a channel", func(_ *job, a *account, _ time.Time) error {
		if c := s.channels[id]; c != nil && c.Account == a.Email {
			delete(s.channels, id)
		}
		maps.DeleteFunc(a.watches, func(_ jobs.WatchKey, w *jobs.Watch) bool { return w.Channel == id })
		return nil
	})
	return err
}

// StoppableChannels returns channels of an account that are to be stopped, and of which it
// is known how.
func (s *Store) StoppableChannels(ctx context.Context, email string) (all []jobs.Channel, err error) {
	err = s.do(ctx, func(now time.Time) error {
		for _, c := range sorted(s.channels) {
			a := s.accounts[c.Account]
			stops := c.State == jobs.ChannelReplaced || c.State == jobs.ChannelStray ||
				c.State == jobs.ChannelActive && c.Kind == jobs.WatchCalendar && !a.watchable(c.Calendar)
			if c.Account == jobs.FoldAddress(email) && c.Resource != "" && c.ExpiresAt.After(now) && stops {
				all = append(all, c.Channel)
			}
		}
		return nil
	})
	return all, err
}

// PruneWatches forgets channels whose time has ended, and such watches of calendars that
// are not to be watched any more.
func (s *Store) PruneWatches(ctx context.Context) error {
	return s.do(ctx, func(now time.Time) error {
		maps.DeleteFunc(s.channels, func(_ string, c *channel) bool { return !c.ExpiresAt.After(now) })
		for _, a := range s.accounts {
			maps.DeleteFunc(a.watches, func(k jobs.WatchKey, w *jobs.Watch) bool {
				return k.Kind == jobs.WatchCalendar && !w.ExpiresAt.After(now) && !a.watchable(k.Calendar)
			})
		}
		return nil
	})
}

// LapseWatches marks watches whose time has ended, and returns each of them once.
func (s *Store) LapseWatches(ctx context.Context) (lapsed []jobs.WatchKey, err error) {
	err = s.do(ctx, func(now time.Time) error {
		for _, a := range sorted(s.accounts) {
			for k, w := range a.watches {
				if w.State == jobs.WatchActive && !w.ExpiresAt.After(now) {
					w.State = jobs.WatchLapsed
					lapsed = append(lapsed, k)
				}
			}
		}
		return nil
	})
	return lapsed, err
}

// CountWatches counts watches by kind and state.
func (s *Store) CountWatches(ctx context.Context) (map[jobs.WatchKind]map[jobs.WatchState]int, error) {
	n := map[jobs.WatchKind]map[jobs.WatchState]int{}
	err := s.do(ctx, func(time.Time) error {
		for _, a := range s.accounts {
			for _, w := range a.watches {
				if n[w.Kind] == nil {
					n[w.Kind] = map[jobs.WatchState]int{}
				}
				n[w.Kind][w.State]++
			}
		}
		return nil
	})
	return n, err
}

// notePush records when Google last reported changes of something.
func (a *account) notePush(k jobs.WatchKey, now time.Time) {
	k.Account = a.Email
	if w := a.watches[k]; w != nil {
		w.LastPushAt = now
	}
}

// PushMail is [jobs.MailAsk.Push] in the store.
func (s *Store) PushMail(ctx context.Context, email string, historyID uint64) (outcome jobs.PushOutcome, err error) {
	err = s.do(ctx, func(now time.Time) error {
		a := s.accounts[jobs.FoldAddress(email)]
		if a == nil || a.cursor == nil {
			outcome = jobs.PushUnknown
			return nil
		}
		a.notePush(jobs.WatchKey{Kind: jobs.WatchMail}, now)
		ask := s.mailAsk(a)
		if outcome = ask.Push(historyID, now); outcome == jobs.PushAsked {
			a.cursor = &ask.Cursor
			if j := s.jobs[jobs.SyncID(a.Email)]; j != nil && j.State.Live() {
				s.save(j, now)
			}
		}
		return nil
	})
	return outcome, err
}

// Channel returns a channel, or [jobs.ErrNotFound].
func (s *Store) Channel(ctx context.Context, id string) (out jobs.Channel, err error) {
	err = s.do(ctx, func(time.Time) error {
		c := s.channels[id]
		if c == nil {
			return fmt.Errorf("channel %q: %w", id, jobs.ErrNotFound)
		}
		out = c.Channel
		return nil
	})
	return out, err
}

// PushChannel asks for a sync of calendars because a channel reported a change, unless
// this message of the channel or a later one came before.
func (s *Store) PushChannel(ctx context.Context, id, resource string, number uint64, changed bool) (outcome jobs.PushOutcome, err error) {
	err = s.do(ctx, func(now time.Time) error {
		c := s.channels[id]
		switch {
		case c == nil || c.State == jobs.ChannelStray:
			outcome = jobs.PushUnknown
			return nil
		case number <= c.last:
			outcome = jobs.PushRepeated
			return nil
		}
		a := s.accounts[c.Account]
		c.last, c.Resource = number, clean(resource)
		a.notePush(c.WatchKey, now)
		ask := s.calendarAsk(a)
		switch {
		case !changed:
			outcome = jobs.PushKnown
			return nil
		case !ask.Ask(now, false):
			outcome = jobs.PushResting
			return nil
		case c.State == jobs.ChannelReplaced:
			outcome = jobs.PushReplaced
		default:
			outcome = jobs.PushAsked
		}
		a.list = &ask.List
		return nil
	})
	return outcome, err
}

// AddStray records a channel of an account that nothing is known of, so that it is
// stopped.
func (s *Store) AddStray(ctx context.Context, c jobs.Channel) error {
	return s.do(ctx, func(now time.Time) error {
		a, strays := s.accounts[jobs.FoldAddress(c.Account)], 0
		for _, other := range s.channels {
			if a != nil && other.Account == a.Email && other.State == jobs.ChannelStray {
				strays++
			}
		}
		if a == nil || s.channels[c.ID] != nil || strays >= mostStrays {
			return nil
		}
		c.WatchKey = jobs.WatchKey{Account: a.Email, Kind: jobs.WatchCalendar}
		c.State, c.ExpiresAt = jobs.ChannelStray, now.Add(channelLife)
		s.channels[c.ID] = &channel{Channel: c}
		return nil
	})
}
