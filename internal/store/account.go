package store

import (
	"context"
	"fmt"

	"headroom/jobs"
)

// AddAccount stores an account, its address as [jobs.ParseAddress] gives it. It
// sets CreatedAt itself. The error is [jobs.ErrExists] when the address is there
// already.
func (s *Store) AddAccount(ctx context.Context, a jobs.Account) error {
	email, err := jobs.ParseAddress(a.Email)
	if err != nil {
		return fmt.Errorf("add account: %w", err)
	}
	if a.Project == "" {
		return fmt.Errorf("account %q names no Google Cloud project", email)
	}
	return s.write(ctx, func(ctx context.Context, x *tx) error {
		res, err := x.ExecContext(ctx, `INSERT INTO accounts (email, project, created_at) VALUES (?, ?, ?)
			ON CONFLICT (email) DO NOTHING`, email, a.Project, x.now)
		if err != nil {
			return fmt.Errorf("add account %q: %w", email, err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return fmt.Errorf("account %q: %w", email, orElse(err, jobs.ErrExists))
		}
		return nil
	})
}

// Account returns one account, or [jobs.ErrNotFound]. The case of A to Z in the
// address does not matter.
func (s *Store) Account(ctx context.Context, email string) (jobs.Account, error) {
	var a jobs.Account
	err := s.reader.QueryRowContext(ctx, "SELECT email, project, created_at FROM accounts WHERE email = ?", normal(email)).
		Scan(&a.Email, &a.Project, millis{&a.CreatedAt})
	if err != nil {
		return jobs.Account{}, fmt.Errorf("account %q: %w", email, notFound(err))
	}
	return a, nil
}

// Accounts lists all accounts by address.
func (s *Store) Accounts(ctx context.Context) ([]jobs.Account, error) {
	return list(ctx, s, func(scan func(...any) error, a *jobs.Account) error {
		return scan(&a.Email, &a.Project, millis{&a.CreatedAt})
	}, "SELECT email, project, created_at FROM accounts ORDER BY email")
}

// normal is the form of an address in the store.
func normal(email string) string { return jobs.FoldAddress(email) }

func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// list reads all rows of a query.
func list[T any](ctx context.Context, s *Store, scan func(func(...any) error, *T) error, query string, args ...any) ([]T, error) {
	rows, err := s.reader.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("query the store: %w", err)
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		var one T
		if err := scan(rows.Scan, &one); err != nil {
			return nil, fmt.Errorf("read a row: %w", err)
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("query the store: %w", err)
	}
	return all, nil
}
