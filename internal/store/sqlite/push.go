package sqlite

import (
	"context"
	"errors"
	"fmt"

	"headroom/jobs"
)

// PushMail asks for a live sync because Gmail told of a change with a history id,
// unless the store has that change already. At most one sync waits while one runs.
// A sync that rests because somebody wants it so, or because the account must act,
// goes on resting.
func (s *Store) PushMail(ctx context.Context, email string, historyID uint64) (outcome jobs.PushOutcome, err error) {
	account := normal(email)
	err = s.line.do(ctx, ahead, func(ctx context.Context, x *tx) error {
		c, err := x.cursor(ctx, account)
		if errors.Is(err, jobs.ErrNoCursor) {
			outcome = jobs.PushUnknown
			return nil
		}
		if err != nil {
			return err
		}
		if err := x.notePush(ctx, jobs.WatchKey{Account: account, Kind: jobs.WatchMail}); err != nil {
			return err
		}
		if historyID <= c.HistoryID {
			outcome = jobs.PushKnown
			return nil
		}
		r, err := x.load(ctx, jobs.SyncID(account))
		switch {
		case errors.Is(err, jobs.ErrNotFound):
		case err != nil:
			return err
		case r.State.Rests(), r.Wanted.Rests():
			outcome = jobs.PushResting
			return nil
		case r.State.Live():
			outcome = jobs.PushAsked
			if !r.Checkpoint.Listed && !c.AskedAt.IsZero() {
				return nil // it reads the history again as it is
			}
			return x.remember(ctx, r)
		}
		outcome = jobs.PushAsked
		return x.askMail(ctx, account)
	})
	if err != nil {
		return "", fmt.Errorf("take a push for %q: %w", account, err)
	}
	return outcome, nil
}

// askMail asks for a sync; one that was asked for before and has not begun stays
// asked for since then.
func (x *tx) askMail(ctx context.Context, account string) error {
	_, err := x.ExecContext(ctx, "UPDATE mailboxes SET asked_at = ? WHERE account = ? AND asked_at = 0", x.now, account)
	return err
}

// notePush notes when Google last told of something.
func (x *tx) notePush(ctx context.Context, k jobs.WatchKey) error {
	_, err := x.ExecContext(ctx, "UPDATE watches SET last_push_at = ? WHERE account = ? AND kind = ? AND calendar = ?",
		x.now, k.Account, k.Kind, k.Calendar)
	return err
}
