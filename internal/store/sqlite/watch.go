package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"headroom/jobs"
)

const selectWatch = `SELECT account, kind, calendar, state, channel, expires_at, renewed_at, renew_at, last_push_at, failures, next_try, last_error FROM watches `

func scanWatch(scan func(...any) error, w *jobs.Watch) error {
	return scan(&w.Account, &w.Kind, &w.Calendar, &w.State, &w.Channel, millis{&w.ExpiresAt}, millis{&w.RenewedAt},
		millis{&w.RenewAt}, millis{&w.LastPushAt}, &w.Failures, millis{&w.NextTry}, &w.LastError)
}

// Watches lists watches, of an account only if one is named, in the order of their
// keys, those after one only; the zero key for the first.
func (s *Store) Watches(ctx context.Context, account string, after jobs.WatchKey, limit int) (all []jobs.Watch, err error) {
	err = s.read(ctx, func(x *tx) (err error) {
		of, args := "", []any{after.Account, after.Kind, after.Calendar}
		if account != "" {
			of, args = "AND account = ? ", append(args, normal(account))
		}
		all, err = rows(ctx, x, scanWatch, selectWatch+"WHERE (account, kind, calendar) > (?, ?, ?) "+of+
			"ORDER BY account, kind, calendar LIMIT ?", append(args, page(limit))...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list watches: %w", err)
	}
	return all, nil
}

// Watch returns one watch. One that was never made is in state none, which is no
// error.
func (s *Store) Watch(ctx context.Context, k jobs.WatchKey) (w jobs.Watch, err error) {
	k.Account = normal(k.Account)
	err = s.read(ctx, func(x *tx) (err error) {
		w, err = x.watch(ctx, k)
		return err
	})
	if err != nil {
		return jobs.Watch{}, fmt.Errorf("watch of %s %s %s: %w", k.Kind, k.Account, k.Calendar, err)
	}
	return w, nil
}

func (x *tx) watch(ctx context.Context, k jobs.WatchKey) (w jobs.Watch, err error) {
	err = scanWatch(x.QueryRowContext(ctx, selectWatch+"WHERE account = ? AND kind = ? AND calendar = ?", k.Account, k.Kind, k.Calendar).Scan, &w)
	if errors.Is(err, sql.ErrNoRows) {
		return jobs.Watch{WatchKey: k, State: jobs.WatchNone}, nil
	}
	return w, err
}

func (x *tx) saveWatch(ctx context.Context, w jobs.Watch) error {
	_, err := x.ExecContext(ctx, `INSERT INTO watches (account, kind, calendar, state, channel, expires_at, renewed_at, renew_at, failures, next_try, last_error)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (account, kind, calendar) DO UPDATE SET state = excluded.state, channel = excluded.channel,
			expires_at = excluded.expires_at, renewed_at = excluded.renewed_at, renew_at = excluded.renew_at,
			failures = excluded.failures, next_try = excluded.next_try, last_error = excluded.last_error`,
		w.Account, w.Kind, w.Calendar, w.State, w.Channel, toMillis(w.ExpiresAt), toMillis(w.RenewedAt), toMillis(w.RenewAt),
		w.Failures, toMillis(w.NextTry), clean(w.LastError))
	return err
}

// WatchDue reports whether the owner of a sync is to renew a watch now.
func (s *Store) WatchDue(ctx context.Context, k jobs.WatchKey) (due bool, err error) {
	k.Account = normal(k.Account)
	err = s.read(ctx, func(x *tx) error {
		w, err := x.watch(ctx, k)
		due = w.Due(x.moment())
		return err
	})
	if err != nil {
		return false, fmt.Errorf("watch of %s %s %s: %w", k.Kind, k.Account, k.Calendar, err)
	}
	return due, nil
}

// Renewed notes that the owner of a sync has made Google tell of something for
// life from now on, and that this is to be renewed in renew.
func (s *Store) Renewed(ctx context.Context, ref jobs.TaskRef, k jobs.WatchKey, life, renew time.Duration) error {
	_, err := s.owned(ctx, ahead, ref, "note a watch", func(ctx context.Context, x *tx, r *row) error {
		k.Account = r.Account
		return x.saveWatch(ctx, jobs.NewWatch(k, "", x.moment(), life, renew))
	})
	return err
}

// RenewalFailed notes that the owner of a sync could not renew a watch. With a
// wait it was not let, which is no failure, and is to try again then.
func (s *Store) RenewalFailed(ctx context.Context, ref jobs.TaskRef, k jobs.WatchKey, what string, wait time.Duration) error {
	_, err := s.owned(ctx, ahead, ref, "note a watch", func(ctx context.Context, x *tx, r *row) error {
		k.Account = r.Account
		w, err := x.watch(ctx, k)
		if err != nil {
			return err
		}
		w.Fail(what, wait, x.moment())
		return x.saveWatch(ctx, w)
	})
	return err
}

// askForWatches asks for the syncs that renew what is due of an account's watches,
// and reports whether anything was.
func (s *Store) askForWatches(ctx context.Context, x *tx, account string) (asked bool, err error) {
	if slices.Contains(s.watched, jobs.WatchMail) {
		w, err := x.watch(ctx, jobs.WatchKey{Account: account, Kind: jobs.WatchMail})
		if err == nil && w.Due(x.moment()) {
			asked, err = x.askMail(ctx, account)
		}
		if err != nil {
			return false, err
		}
	}
	if slices.Contains(s.watched, jobs.WatchCalendar) {
		due, err := x.dueChannels(ctx, account, 1)
		if err != nil || len(due) == 0 {
			return asked, err
		}
		calendars, err := x.askCalendars(ctx, account, false)
		return asked || calendars, err
	}
	return asked, nil
}

// makeWatchesDue makes the account's watches due, whenever else they were to be
// renewed or tried again.
func (x *tx) makeWatchesDue(ctx context.Context, account string) error {
	_, err := x.ExecContext(ctx, "UPDATE watches SET renew_at = MIN(renew_at, ?), next_try = 0 WHERE account = ?", x.now, account)
	return err
}

// LapseWatches marks watches whose time has ended, and returns each of them once,
// however many processes ask.
func (s *Store) LapseWatches(ctx context.Context) (lapsed []jobs.WatchKey, err error) {
	var due bool
	err = s.read(ctx, func(x *tx) (err error) {
		due, err = x.exists(ctx, "SELECT 1 FROM watches WHERE state = 'active' AND expires_at <= ? LIMIT 1", x.now)
		return err
	})
	if err == nil && due {
		err = s.write(ctx, func(ctx context.Context, x *tx) (err error) {
			lapsed, err = rows(ctx, x, func(scan func(...any) error, k *jobs.WatchKey) error {
				return scan(&k.Account, &k.Kind, &k.Calendar)
			}, "UPDATE watches SET state = ? WHERE state = ? AND expires_at <= ? RETURNING account, kind, calendar", jobs.WatchLapsed, jobs.WatchActive, x.now)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("mark watches that have lapsed: %w", err)
	}
	return lapsed, nil
}

// CountWatches counts watches by kind and state.
func (s *Store) CountWatches(ctx context.Context) (n map[jobs.WatchKind]map[jobs.WatchState]int, err error) {
	n = map[jobs.WatchKind]map[jobs.WatchState]int{}
	err = s.read(ctx, func(x *tx) error {
		rows, err := x.QueryContext(ctx, "SELECT kind, state, COUNT(*) FROM watches GROUP BY kind, state")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var kind jobs.WatchKind
			var state jobs.WatchState
			var count int
			if err := rows.Scan(&kind, &state, &count); err != nil {
				return err
			}
			if n[kind] == nil {
				n[kind] = map[jobs.WatchState]int{}
			}
			n[kind][state] = count
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("count watches: %w", err)
	}
	return n, nil
}
