package store

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"headroom/jobs"
)

const selectChannel = "SELECT id, account, kind, calendar, resource, token_hash, state, expires_at, last_message FROM channels "

// channelLife is longer than a channel of Calendar's lives that asks for no time. A
// row is kept for so long where nobody knows when its channel ends.
const channelLife = 8 * 24 * time.Hour

func scanChannel(scan func(...any) error, c *jobs.Channel, last *int64) error {
	var hash string
	err := scan(&c.ID, &c.Account, &c.Kind, &c.Calendar, &c.Resource, &hash, &c.State, millis{&c.ExpiresAt}, last)
	if err == nil {
		c.TokenHash, err = hex.DecodeString(hash)
	}
	return err
}

// Channel returns a channel, or [jobs.ErrNotFound].
func (s *Store) Channel(ctx context.Context, id string) (c jobs.Channel, err error) {
	err = s.read(ctx, func(x *tx) (err error) {
		c, _, err = x.channel(ctx, id)
		return err
	})
	if err != nil {
		return jobs.Channel{}, fmt.Errorf("channel %q: %w", id, err)
	}
	return c, nil
}

func (x *tx) channel(ctx context.Context, id string) (c jobs.Channel, last int64, err error) {
	err = scanChannel(x.QueryRowContext(ctx, selectChannel+"WHERE id = ?", id).Scan, &c, &last)
	return c, last, notFound(err)
}

// PushChannel asks for a sync of an account's calendars because a channel told of
// a change, unless the message or a later one of the channel came before. Changed
// is false for the message that only says that the channel is there. Sync that
// rests goes on resting, as in [Store.PushMail].
func (s *Store) PushChannel(ctx context.Context, id, resource string, number uint64, changed bool) (outcome jobs.PushOutcome, err error) {
	err = s.line.do(ctx, ahead, func(ctx context.Context, x *tx) (err error) {
		outcome, err = x.pushChannel(ctx, id, resource, int64(number), changed)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("take a push on channel %q: %w", id, err)
	}
	return outcome, nil
}

func (x *tx) pushChannel(ctx context.Context, id, resource string, number int64, changed bool) (jobs.PushOutcome, error) {
	c, last, err := x.channel(ctx, id)
	switch {
	case errors.Is(err, jobs.ErrNotFound):
		return jobs.PushUnknown, nil
	case err != nil:
		return "", err
	case number <= last:
		return jobs.PushRepeated, nil
	}
	// Of a channel whose answer was lost this is how its resource becomes known, by
	// which it can be stopped.
	if _, err := x.ExecContext(ctx, "UPDATE channels SET last_message = ?, resource = ? WHERE id = ?", number, clean(resource), id); err != nil {
		return "", err
	}
	if err := x.notePush(ctx, c.WatchKey); err != nil {
		return "", err
	}
	if !changed {
		return jobs.PushKnown, nil
	}
	r, err := x.load(ctx, jobs.CalendarID(c.Account))
	switch {
	case err == nil && (rests(r.State) || rests(r.Wanted)):
		return jobs.PushResting, nil
	case err != nil && !errors.Is(err, jobs.ErrNotFound):
		return "", err
	}
	if err := x.askCalendars(ctx, c.Account, false); err != nil {
		return "", err
	}
	if c.State == jobs.ChannelReplaced {
		return jobs.PushReplaced, nil
	}
	return jobs.PushAsked, nil
}

// AddChannel notes that the owner of a sync is about to ask Google for a channel.
// One that was asked for before for the same watch, without an answer that is
// known, is as good as replaced.
func (s *Store) AddChannel(ctx context.Context, ref jobs.TaskRef, c jobs.Channel) error {
	_, err := s.owned(ctx, ahead, ref, "add a channel", func(ctx context.Context, x *tx, r *row) error {
		if err := x.replaceChannels(ctx, r.Account, c.WatchKey, jobs.ChannelPending); err != nil {
			return err
		}
		_, err := x.ExecContext(ctx, `INSERT INTO channels (id, account, kind, calendar, token_hash, state, expires_at, created_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, c.ID, r.Account, c.Kind, c.Calendar, hex.EncodeToString(c.TokenHash),
			jobs.ChannelPending, toMillis(x.after(channelLife)), x.now)
		return err
	})
	return err
}

func (x *tx) replaceChannels(ctx context.Context, account string, k jobs.WatchKey, state jobs.ChannelState) error {
	_, err := x.ExecContext(ctx, "UPDATE channels SET state = ? WHERE account = ? AND kind = ? AND calendar = ? AND state = ?",
		jobs.ChannelReplaced, account, k.Kind, k.Calendar, state)
	return err
}

// ChannelMade notes that Google has made a channel, which lives for life from now
// on and is to be replaced in renew. The one before it is to be stopped.
func (s *Store) ChannelMade(ctx context.Context, ref jobs.TaskRef, c jobs.Channel, life, renew time.Duration) error {
	_, err := s.owned(ctx, ahead, ref, "note a channel", func(ctx context.Context, x *tx, r *row) error {
		if err := x.replaceChannels(ctx, r.Account, c.WatchKey, jobs.ChannelActive); err != nil {
			return err
		}
		_, err := x.ExecContext(ctx, "UPDATE channels SET state = ?, resource = ?, expires_at = ? WHERE id = ?",
			jobs.ChannelActive, clean(c.Resource), toMillis(x.after(life)), c.ID)
		if err != nil {
			return err
		}
		k := c.WatchKey
		k.Account = r.Account
		return x.saveWatch(ctx, jobs.Watch{WatchKey: k, State: jobs.WatchActive, Channel: c.ID,
			RenewedAt: fromMillis(x.now), ExpiresAt: x.after(life), RenewAt: x.after(renew)})
	})
	return err
}

// DropChannel forgets a channel that Google knows no more, or never made.
func (s *Store) DropChannel(ctx context.Context, ref jobs.TaskRef, id string) error {
	_, err := s.owned(ctx, ahead, ref, "drop a channel", func(ctx context.Context, x *tx, r *row) error {
		_, err := x.ExecContext(ctx, "DELETE FROM channels WHERE id = ? AND account = ?", id, r.Account)
		return err
	})
	return err
}

// StoppableChannels returns channels of an account that are to be stopped, and of
// which it is known how.
func (s *Store) StoppableChannels(ctx context.Context, account string) (all []jobs.Channel, err error) {
	err = s.read(ctx, func(x *tx) error {
		rows, err := x.QueryContext(ctx, selectChannel+"WHERE account = ? AND state = ? AND resource <> '' AND expires_at > ? LIMIT ?",
			normal(account), jobs.ChannelReplaced, x.now, DefaultPage)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var c jobs.Channel
			var last int64
			if err := scanChannel(rows.Scan, &c, &last); err != nil {
				return err
			}
			all = append(all, c)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("list channels of %s: %w", account, err)
	}
	return all, nil
}

// DueChannels returns what is to be watched of an account's calendars and is not,
// or not for much longer: their list, and each calendar that is in step.
func (s *Store) DueChannels(ctx context.Context, account string) (due []jobs.WatchKey, err error) {
	err = s.read(ctx, func(x *tx) error {
		rows, err := x.QueryContext(ctx, dueChannels, normal(account), x.now, x.now, normal(account), x.now, x.now, DefaultPage)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			k := jobs.WatchKey{Account: normal(account)}
			if err := rows.Scan(&k.Kind, &k.Calendar); err != nil {
				return err
			}
			due = append(due, k)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("list watches of %s that are due: %w", account, err)
	}
	return due, nil
}

const dueChannels = `SELECT 'calendar-list', '' FROM calendar_lists AS l
		LEFT JOIN watches AS w ON w.account = l.account AND w.kind = 'calendar-list' AND w.calendar = ''
		WHERE l.account = ? AND l.synced_at > 0 AND COALESCE(w.renew_at, 0) <= ? AND COALESCE(w.next_try, 0) <= ?
	UNION ALL
	SELECT 'calendar', c.id FROM calendars AS c
		LEFT JOIN watches AS w ON w.account = c.account AND w.kind = 'calendar' AND w.calendar = c.id
		WHERE c.account = ? AND c.state = 'synced' AND COALESCE(w.renew_at, 0) <= ? AND COALESCE(w.next_try, 0) <= ?
	LIMIT ?`

const dueChannelAccounts = `SELECT l.account FROM calendar_lists AS l
		LEFT JOIN watches AS w ON w.account = l.account AND w.kind = 'calendar-list' AND w.calendar = ''
		LEFT JOIN jobs AS j ON j.id = 'calendar:' || l.account
	WHERE l.asked_at = 0 AND l.synced_at > 0
		AND (COALESCE(w.renew_at, 0) <= ?1 AND COALESCE(w.next_try, 0) <= ?2
			OR EXISTS (SELECT 1 FROM calendars AS c LEFT JOIN watches AS v ON v.account = c.account AND v.kind = 'calendar' AND v.calendar = c.id
				WHERE c.account = l.account AND c.state = 'synced' AND COALESCE(v.renew_at, 0) <= ?1 AND COALESCE(v.next_try, 0) <= ?2))
		AND COALESCE(w.asked_at, 0) <= ?3
		AND COALESCE(j.state, '') NOT IN ('paused', 'blocked', 'cancelled') AND COALESCE(j.wanted, '') = ''
	LIMIT ?4`

// AskForChannels asks for a sync of accounts whose calendars are to be watched, or
// to be watched anew; see [Store.AskForMailWatches]. Channels whose time has ended
// are forgotten, and so are watches of calendars that are no longer in step.
func (s *Store) AskForChannels(ctx context.Context, limit int) (int, error) {
	if err := s.pruneChannels(ctx); err != nil {
		return 0, err
	}
	return s.askForWatches(ctx, jobs.WatchCalendarList, dueChannelAccounts, limit,
		func(x *tx, ctx context.Context, account string) error { return x.askCalendars(ctx, account, false) })
}

// gone holds for watches of calendars that are not to be watched any more, once
// their channel has ended.
const gone = `kind = 'calendar' AND expires_at <= ? AND NOT EXISTS (SELECT 1 FROM calendars AS c
	WHERE c.account = watches.account AND c.id = watches.calendar AND c.state = 'synced')`

func (s *Store) pruneChannels(ctx context.Context) error {
	var old bool
	err := s.read(ctx, func(x *tx) (err error) {
		old, err = x.exists(ctx, `SELECT 1 WHERE EXISTS (SELECT 1 FROM channels WHERE expires_at <= ?)
			OR EXISTS (SELECT 1 FROM watches WHERE `+gone+")", x.now, x.now)
		return err
	})
	if err == nil && old {
		err = s.write(ctx, func(ctx context.Context, x *tx) error {
			if _, err := x.ExecContext(ctx, "DELETE FROM channels WHERE expires_at <= ?", x.now); err != nil {
				return err
			}
			_, err := x.ExecContext(ctx, "DELETE FROM watches WHERE "+gone, x.now)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("forget channels that have ended: %w", err)
	}
	return nil
}
