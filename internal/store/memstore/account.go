package memstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"headroom/jobs"
)

// AddAccount stores an account. The error is [jobs.ErrExists] if it is there already.
func (s *Store) AddAccount(ctx context.Context, a jobs.Account) error {
	email, err := jobs.ParseAddress(a.Email)
	if err != nil {
		return fmt.Errorf("add account: %w", err)
	}
	if a.Project == "" {
		return fmt.Errorf("account %q names no Google Cloud project", email)
	}
	return s.do(ctx, func(now time.Time) error {
		if s.accounts[email] != nil {
			return fmt.Errorf("account %q: %w", email, jobs.ErrExists)
		}
		a.Email, a.CreatedAt = email, now
		s.addAccount(a)
		return nil
	})
}

func (s *Store) addAccount(a jobs.Account) *account {
	s.accounts[a.Email] = &account{Account: a, messages: map[string]*jobs.Message{}, attachments: map[string]map[string]jobs.Attachment{},
		snapshot: map[string][]string{}, calendars: map[string]*calendar{}, slots: map[jobs.Schedule]*jobs.Slot{},
		watches: map[jobs.WatchKey]*jobs.Watch{}}
	s.revision.Accounts++
	return s.accounts[a.Email]
}

// AssignAccount gives an account another tenant or class, where they are not nil.
func (s *Store) AssignAccount(ctx context.Context, email string, tenant, class *string) error {
	return s.do(ctx, func(time.Time) error {
		a, err := s.account(email)
		if err != nil {
			return err
		}
		if tenant != nil {
			a.Tenant = *tenant
		}
		if class != nil {
			a.Class = *class
		}
		s.revision.Accounts++
		return nil
	})
}

// Account returns an account, or [jobs.ErrNotFound].
func (s *Store) Account(ctx context.Context, email string) (out jobs.Account, err error) {
	err = s.do(ctx, func(time.Time) error {
		a, err := s.account(email)
		if err == nil {
			out = a.shown()
		}
		return err
	})
	return out, err
}

// shown is the account with its tenant: the domain, unless one was named.
func (a *account) shown() jobs.Account {
	out := a.Account
	if out.Tenant == "" {
		_, out.Tenant, _ = strings.Cut(out.Email, "@")
	}
	return out
}

// NoteMailbox records the address by which Google names the mailbox, and returns the
// other accounts of the same one.
func (s *Store) NoteMailbox(ctx context.Context, ref jobs.TaskRef, address string) (others []string, err error) {
	address = jobs.FoldAddress(address)
	_, err = s.owned(ctx, ref, "record the mailbox", func(_ *job, a *account, _ time.Time) error {
		a.Mailbox = address
		for _, other := range s.accounts {
			if other != a && other.QuotaUser() == address {
				others = append(others, other.Email)
			}
		}
		slices.Sort(others)
		return nil
	})
	return others, err
}
