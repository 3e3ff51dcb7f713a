package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"headroom/config"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

// An Assignment is the tenant and the priority class that an account is to have.
// Nil changes nothing; "" means the domain of the address, and the class of the tenant.
type Assignment struct{ Tenant, Class *string }

func (as Assignment) validate(cfg config.Config) error {
	if t := as.Tenant; t != nil && *t != "" && !config.ValidGroup(*t) {
		return refusef("%q cannot be a tenant: 1 to 128 characters that can be seen, no space, comma or =", *t)
	}
	if c := as.Class; c != nil && *c != "" && !cfg.Fairness.HasClass(*c) {
		known := append(slices.Collect(maps.Keys(cfg.Fairness.Classes)), jobs.DefaultClass)
		slices.Sort(known)
		return refusef("unknown priority class %s; there are %s; add fairness.classes.%s to the settings file",
			*c, strings.Join(slices.Compact(known), ", "), *c)
	}
	return nil
}

// Accounts lists all accounts by address.
func (c *Control) Accounts(ctx context.Context) ([]jobs.Account, error) {
	return read(ctx, c, func(s *sqlite.Store) ([]jobs.Account, error) { return s.Accounts(ctx) })
}

// Account returns an account, with the others that share its mailbox. The error of an
// unknown account contains the command that adds it.
func (c *Control) Account(ctx context.Context, email string) (jobs.Account, error) {
	_, account, err := c.known(ctx, email)
	return account, err
}

// known finds an account in the store, which it returns as well.
func (c *Control) known(ctx context.Context, email string) (*sqlite.Store, jobs.Account, error) {
	s, err := c.store(ctx)
	if err != nil {
		return nil, jobs.Account{}, err
	}
	account, err := s.Account(ctx, email)
	if errors.Is(err, jobs.ErrNotFound) {
		return nil, jobs.Account{}, c.unknownAccount(email)
	}
	if err != nil {
		return nil, jobs.Account{}, err
	}
	account.SharedWith, err = s.SameMailbox(ctx, account)
	return s, account, err
}

// storeOf opens the store for a use case of one account. If there is no store, the
// account is unknown.
func (c *Control) storeOf(ctx context.Context, email string) (*sqlite.Store, error) {
	s, err := c.store(ctx)
	if errors.Is(err, ErrNoStore) {
		return nil, c.unknownAccount(email)
	}
	return s, err
}

// unknownAccount is the error of an account that is not stored, with the command that
// adds it to a project of the settings.
func (c *Control) unknownAccount(email string) error {
	project := "PROJECT"
	if names := slices.Sorted(maps.Keys(c.cfg.Google.Projects)); len(names) > 0 {
		project = names[0]
	}
	return missing(fmt.Sprintf("add it with: headroom account add %s --project %s", email, project), "unknown account %s", email)
}

// AddAccount stores an account, and makes the store if it does not exist. The error is
// [jobs.ErrExists] if the account is stored already.
func (c *Control) AddAccount(ctx context.Context, email, project string, as Assignment) (jobs.Account, error) {
	if _, err := c.projects(); err != nil { // before a store is made
		return jobs.Account{}, err
	}
	if err := as.validate(c.cfg); err != nil {
		return jobs.Account{}, err
	}
	if err := c.knownProject(project); err != nil {
		return jobs.Account{}, err
	}
	s, err := c.newStore(ctx)
	if err != nil {
		return jobs.Account{}, err
	}
	account := jobs.Account{Email: email, Project: project}
	if as.Tenant != nil {
		account.Tenant = *as.Tenant
	}
	if as.Class != nil {
		account.Class = *as.Class
	}
	err = s.AddAccount(ctx, account)
	if errors.Is(err, jobs.ErrExists) {
		return jobs.Account{}, fmt.Errorf("%w; start its backfill with: headroom backfill start %s", err, email)
	}
	if err != nil {
		return jobs.Account{}, err
	}
	return c.Account(ctx, email)
}

func (c *Control) knownProject(project string) error {
	if _, ok := c.cfg.Google.Projects[project]; ok {
		return nil
	}
	return refusef("unknown project %s, the settings name %s; add google.projects.%s to the settings file", project, named(c.cfg.Google.Projects), project)
}

// named lists the keys of a map; "none" if it is empty.
func named[V any](m map[string]V) string {
	if len(m) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

// AssignAccount changes the tenant or the priority class of an account, from the
// next admission on.
func (c *Control) AssignAccount(ctx context.Context, email string, as Assignment) (jobs.Account, error) {
	if err := as.validate(c.cfg); err != nil { // before the store is looked for
		return jobs.Account{}, err
	}
	s, err := c.storeOf(ctx, email)
	if err != nil {
		return jobs.Account{}, err
	}
	err = s.AssignAccount(ctx, email, as.Tenant, as.Class)
	if errors.Is(err, jobs.ErrNotFound) {
		return jobs.Account{}, c.unknownAccount(email)
	}
	if err != nil {
		return jobs.Account{}, err
	}
	return s.Account(ctx, email)
}
