package sqlite

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"headroom/jobs"
)

const selectChannel = "SELECT id, account, kind, calendar, resource, token_hash, state, expires_at FROM channels "

// channelLife is longer than a channel of Calendar's lives that asks for no time. A
// row is kept for so long where nobody knows when its channel ends.
const channelLife = 8 * 24 * time.Hour

func scanChannel(scan func(...any) error, c *jobs.Channel) error {
	var hash string
	err := scan(&c.ID, &c.Account, &c.Kind, &c.Calendar, &c.Resource, &hash, &c.State, millis{&c.ExpiresAt})
	if err == nil {
		c.TokenHash, err = hex.DecodeString(hash)
	}
	return err
}

// Channel returns a channel, or [jobs.ErrNotFound].
func (s *Store) Channel(ctx context.Context, id string) (c jobs.Channel, err error) {
	err = s.read(ctx, func(x *tx) (err error) {
		c, err = x.channel(ctx, id)
		return err
	})
	if err != nil {
		return jobs.Channel{}, fmt.Errorf("channel %q: %w", id, err)
	}
	return c, nil
}

func (x *tx) channel(ctx context.Context, id string) (c jobs.Channel, err error) {
	err = scanChannel(x.QueryRowContext(ctx, selectChannel+"WHERE id = ?", id).Scan, &c)
	return c, notFound(err)
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
	c, err := x.channel(ctx, id)
	switch {
	case errors.Is(err, jobs.ErrNotFound), err == nil && c.State == jobs.ChannelStray:
		return jobs.PushUnknown, nil
	case err != nil:
		return "", err
	}
	// Of a channel whose answer was lost this is how its resource becomes known, by
	// which it can be stopped.
	news, err := x.changed(ctx, "UPDATE channels SET last_message = ?, resource = ? WHERE id = ? AND last_message < ?", number, clean(resource), id, number)
	if err != nil || !news {
		return jobs.PushRepeated, err
	}
	if err := x.notePush(ctx, c.WatchKey); err != nil {
		return "", err
	}
	if !changed {
		return jobs.PushKnown, nil
	}
	a, err := x.calendarAskOrNew(ctx, c.Account)
	if err != nil {
		return "", err
	}
	if !a.Ask(x.moment(), false) {
		return jobs.PushResting, nil
	}
	if err := x.saveCalendarList(ctx, a.List); err != nil {
		return "", err
	}
	if c.State == jobs.ChannelReplaced {
		return jobs.PushReplaced, nil
	}
	return jobs.PushAsked, nil
}

// mostStrays bounds what strangers can have an account's syncs try to stop.
const mostStrays = 10

// AddStray notes a channel that is of an account, as it seems, but stands nowhere,
// as it may after the store was restored from an older copy: the account's next
// sync stops it.
func (s *Store) AddStray(ctx context.Context, c jobs.Channel) error {
	err := s.line.do(ctx, inLine, func(ctx context.Context, x *tx) error {
		_, err := x.ExecContext(ctx, `INSERT INTO channels (id, account, kind, calendar, resource, token_hash, state, expires_at, created_at)
			SELECT ?1, email, ?3, '', ?4, ?5, ?6, ?7, ?8 FROM accounts WHERE email = ?2
				AND (SELECT COUNT(*) FROM channels WHERE account = ?2 AND state = ?6) < ?9
			ON CONFLICT (id) DO NOTHING`, c.ID, normal(c.Account), jobs.WatchCalendar, clean(c.Resource), hex.EncodeToString(c.TokenHash),
			jobs.ChannelStray, toMillis(x.after(channelLife)), x.now, mostStrays)
		return err
	})
	if err != nil {
		return fmt.Errorf("note stray channel %q: %w", c.ID, err)
	}
	return nil
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
		return x.saveWatch(ctx, jobs.NewWatch(k, c.ID, x.moment(), life, renew))
	})
	return err
}

// DropChannel forgets a channel that Google knows no more, or never made, and the
// watch that goes by it.
func (s *Store) DropChannel(ctx context.Context, ref jobs.TaskRef, id string) error {
	_, err := s.owned(ctx, ahead, ref, "drop a channel", func(ctx context.Context, x *tx, r *row) error {
		if _, err := x.ExecContext(ctx, "DELETE FROM channels WHERE id = ? AND account = ?", id, r.Account); err != nil {
			return err
		}
		_, err := x.ExecContext(ctx, "DELETE FROM watches WHERE account = ? AND channel = ?", r.Account, id)
		return err
	})
	return err
}

// StoppableChannels returns channels of an account that are to be stopped, and of
// which it is known how: those that were replaced, those that are strays, and those
// of calendars that are not to be watched any more.
func (s *Store) StoppableChannels(ctx context.Context, account string) (all []jobs.Channel, err error) {
	err = s.read(ctx, func(x *tx) (err error) {
		all, err = rows(ctx, x, scanChannel, selectChannel+`AS w WHERE account = ? AND resource <> '' AND expires_at > ?
			AND (state IN (?, ?) OR state = ? AND `+unwatchable+") LIMIT ?",
			normal(account), x.now, jobs.ChannelReplaced, jobs.ChannelStray, jobs.ChannelActive, DefaultPage)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list channels of %s: %w", account, err)
	}
	return all, nil
}

// DueChannels returns what is to be watched of an account's calendars and is not,
// or not for much longer: their list, and each calendar that is not in trouble.
func (s *Store) DueChannels(ctx context.Context, account string) (due []jobs.WatchKey, err error) {
	err = s.read(ctx, func(x *tx) (err error) {
		due, err = x.dueChannels(ctx, normal(account), DefaultPage)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list watches of %s that are due: %w", account, err)
	}
	return due, nil
}

// watchable holds for calendars c that can be watched. Those that were not read
// yet are among them, so that nothing changes unseen between the two.
const watchable = "c.state IN ('new', 'synced', 'expired')"

const dueChannels = `SELECT 'calendar-list', '' FROM calendar_lists AS l
		LEFT JOIN watches AS w ON w.account = l.account AND w.kind = 'calendar-list' AND w.calendar = ''
		WHERE l.account = ?1 AND COALESCE(w.renew_at, 0) <= ?2 AND COALESCE(w.next_try, 0) <= ?2
	UNION ALL
	SELECT 'calendar', c.id FROM calendars AS c
		LEFT JOIN watches AS w ON w.account = c.account AND w.kind = 'calendar' AND w.calendar = c.id
		WHERE c.account = ?1 AND ` + watchable + ` AND COALESCE(w.renew_at, 0) <= ?2 AND COALESCE(w.next_try, 0) <= ?2
	LIMIT ?3`

func (x *tx) dueChannels(ctx context.Context, account string, limit int) ([]jobs.WatchKey, error) {
	return rows(ctx, x, func(scan func(...any) error, k *jobs.WatchKey) error {
		k.Account = account
		return scan(&k.Kind, &k.Calendar)
	}, dueChannels, account, x.now, limit)
}

// unwatchable holds for watches and channels w of calendars that are not to be
// watched any more.
const unwatchable = `w.kind = 'calendar' AND NOT EXISTS (SELECT 1 FROM calendars AS c
	WHERE c.account = w.account AND c.id = w.calendar AND ` + watchable + ")"

// PruneWatches forgets channels whose time has ended, and watches of calendars that
// are not to be watched any more once theirs has: that they end is no lapse.
func (s *Store) PruneWatches(ctx context.Context) error {
	var old bool
	err := s.read(ctx, func(x *tx) (err error) {
		old, err = x.exists(ctx, `SELECT 1 WHERE EXISTS (SELECT 1 FROM channels WHERE expires_at <= ?1)
			OR EXISTS (SELECT 1 FROM watches AS w WHERE expires_at <= ?1 AND `+unwatchable+")", x.now)
		return err
	})
	if err == nil && old { // most often none is, and nobody waits for writers
		err = s.write(ctx, func(ctx context.Context, x *tx) error {
			if _, err := x.ExecContext(ctx, "DELETE FROM channels WHERE expires_at <= ?", x.now); err != nil {
				return err
			}
			_, err := x.ExecContext(ctx, "DELETE FROM watches AS w WHERE expires_at <= ? AND "+unwatchable, x.now)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("forget channels that have ended: %w", err)
	}
	return nil
}
