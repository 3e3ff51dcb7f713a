package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

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
		res, err := x.ExecContext(ctx, `INSERT INTO accounts (email, project, tenant, class, created_at) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (email) DO NOTHING`, email, a.Project, clean(a.Tenant), clean(a.Class), x.now)
		if err != nil {
			return fmt.Errorf("add account %q: %w", email, err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return fmt.Errorf("account %q: %w", email, orElse(err, jobs.ErrExists))
		}
		return x.reviseAccounts(ctx)
	})
}

// Account returns one account, or [jobs.ErrNotFound]. The case of A to Z in the
// address does not matter.
func (s *Store) Account(ctx context.Context, email string) (jobs.Account, error) {
	var a jobs.Account
	err := scanAccount(s.reader.QueryRowContext(ctx, selectAccount+"WHERE email = ?", normal(email)).Scan, &a)
	if err != nil {
		return jobs.Account{}, fmt.Errorf("account %q: %w", email, notFound(err))
	}
	return a, nil
}

// Accounts lists all accounts by address.
func (s *Store) Accounts(ctx context.Context) ([]jobs.Account, error) {
	return list(ctx, s, scanAccount, selectAccount+"ORDER BY email")
}

// AssignAccount gives an account another tenant or priority class, where they are
// not nil; "" stands for the address' domain and for the tenant's class. It holds
// with the next place that is given out. The error is [jobs.ErrNotFound] when there
// is no such account.
func (s *Store) AssignAccount(ctx context.Context, email string, tenant, class *string) error {
	text := func(s *string) any {
		if s == nil {
			return nil
		}
		return clean(*s)
	}
	return s.write(ctx, func(ctx context.Context, x *tx) error {
		res, err := x.ExecContext(ctx, "UPDATE accounts SET tenant = COALESCE(?, tenant), class = COALESCE(?, class) WHERE email = ?",
			text(tenant), text(class), normal(email))
		if err != nil {
			return fmt.Errorf("assign account %q: %w", email, err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return fmt.Errorf("account %q: %w", email, orElse(err, jobs.ErrNotFound))
		}
		return x.reviseAccounts(ctx)
	})
}

const selectAccount = "SELECT email, project, tenant, class, created_at, mailbox FROM accounts "

func scanAccount(scan func(...any) error, a *jobs.Account) error {
	err := scan(&a.Email, &a.Project, &a.Tenant, &a.Class, millis{&a.CreatedAt}, &a.Mailbox)
	a.Tenant = tenantOf(a.Tenant, a.Email)
	return err
}

// tenantOf is the tenant of an account: its address' domain unless somebody named
// another.
func tenantOf(named, email string) string {
	if named != "" {
		return named
	}
	_, domain, _ := strings.Cut(email, "@")
	return domain
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
	return scanAll(rows, scan)
}

func scanAll[T any](found *sql.Rows, scan func(func(...any) error, *T) error) (all []T, err error) {
	defer found.Close()
	for found.Next() {
		var one T
		if err := scan(found.Scan, &one); err != nil {
			return nil, fmt.Errorf("read a row: %w", err)
		}
		all = append(all, one)
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("query the store: %w", err)
	}
	return all, nil
}

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
