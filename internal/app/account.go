package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

// An Assignment is the tenant and the priority class that an account is to have.
// Nil leaves what is there; "" stands for the address' domain, and for the class of
// the tenant.
type Assignment struct{ Tenant, Class *string }

func (as Assignment) validate(cfg config.Config) error {
	if t := as.Tenant; t != nil && *t != "" && !config.ValidGroup(*t) {
		return &RefusedError{fmt.Errorf("%q cannot be a tenant: 1 to 128 characters that can be seen, no space, comma or =", *t)}
	}
	if c := as.Class; c != nil && *c != "" && !cfg.Fairness.HasClass(*c) {
		known := append(slices.Collect(maps.Keys(cfg.Fairness.Classes)), config.DefaultClass)
		slices.Sort(known)
		return &RefusedError{fmt.Errorf("unknown priority class %s; there are %s; add fairness.classes.%s to the settings file",
			*c, strings.Join(slices.Compact(known), ", "), *c)}
	}
	return nil
}

// AssignAccount changes the tenant or the priority class of an account. It holds
// with the next place that is given out.
func AssignAccount(ctx context.Context, cfg config.Config, email string, as Assignment, log *zap.Logger) (account jobs.Account, err error) {
	if err := as.validate(cfg); err != nil { // before the store is looked for
		return jobs.Account{}, err
	}
	s, err := OpenStore(ctx, cfg, log)
	if errors.Is(err, ErrNoStore) {
		return jobs.Account{}, unknownAccount(cfg, email)
	}
	if err != nil {
		return jobs.Account{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return assignAccount(ctx, cfg, s, email, as)
}

// assignAccount is [AssignAccount] where the store is open.
func assignAccount(ctx context.Context, cfg config.Config, s *sqlite.Store, email string, as Assignment) (jobs.Account, error) {
	if err := as.validate(cfg); err != nil {
		return jobs.Account{}, err
	}
	err := s.AssignAccount(ctx, email, as.Tenant, as.Class)
	if errors.Is(err, jobs.ErrNotFound) {
		return jobs.Account{}, unknownAccount(cfg, email)
	}
	if err != nil {
		return jobs.Account{}, err
	}
	return s.Account(ctx, email)
}
