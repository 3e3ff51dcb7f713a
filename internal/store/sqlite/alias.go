package sqlite

import (
	"context"
	"fmt"

	"headroom/jobs"
)

// NoteMailbox notes the address by which Google names the mailbox of a job's account,
// and returns the other accounts that are known to have the same one.
func (s *Store) NoteMailbox(ctx context.Context, ref jobs.TaskRef, address string) (others []string, err error) {
	_, err = s.owned(ctx, inLine, ref, "note the mailbox's address", func(ctx context.Context, x *tx, r *row) error {
		if _, err := x.ExecContext(ctx, "UPDATE accounts SET mailbox = ? WHERE email = ?", normal(clean(address)), r.Account); err != nil {
			return err
		}
		others, err = x.ids(ctx, sameMailbox, normal(address), r.Account)
		return err
	})
	return others, err
}

const sameMailbox = "SELECT email FROM accounts WHERE (mailbox = ?1 OR email = ?1 AND mailbox = '') AND email <> ?2 ORDER BY email"

// SameMailbox returns the other accounts that are known to have an account's mailbox.
func (s *Store) SameMailbox(ctx context.Context, a jobs.Account) ([]string, error) {
	others, err := list(ctx, s, func(scan func(...any) error, email *string) error { return scan(email) }, sameMailbox, a.QuotaUser(), a.Email)
	if err != nil {
		return nil, fmt.Errorf("other accounts of the mailbox of %s: %w", a.Email, err)
	}
	return others, nil
}
