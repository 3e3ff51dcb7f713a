package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"headroom/config"
	"headroom/jobs"
	"headroom/quota"
)

// QuotaScope says for what settings hold.
type QuotaScope struct {
	Project string `json:"project"`
	Account string `json:"account,omitempty"` // all of the project's if empty
	Limit   string `json:"limit,omitempty"`   // all if empty

	mode quota.Mode // the project's own
}

// suffix is the scope within the project, after the name of a setting.
func (s QuotaScope) suffix() string {
	var b strings.Builder
	if s.Limit != "" {
		b.WriteString(" of " + s.Limit)
	}
	if s.Account != "" {
		b.WriteString(" for " + s.Account)
	}
	return b.String()
}

// scopeOf finds out whether target is a project or an account.
func scopeOf(ctx context.Context, cfg config.Config, target string, log *zap.Logger) (_ QuotaScope, err error) {
	if !strings.Contains(target, "@") {
		if err := knownProject(cfg, target); err != nil {
			return QuotaScope{}, &RefusedError{err}
		}
		return QuotaScope{Project: target}, nil
	}
	s, err := OpenStore(ctx, cfg, log)
	if errors.Is(err, ErrNoStore) {
		return QuotaScope{}, unknownAccount(cfg, target)
	}
	if err != nil {
		return QuotaScope{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	account, err := s.Account(ctx, target)
	if errors.Is(err, jobs.ErrNotFound) {
		return QuotaScope{}, unknownAccount(cfg, target)
	}
	if err != nil {
		return QuotaScope{}, err
	}
	if err := knownProject(cfg, account.Project); err != nil {
		return QuotaScope{}, fmt.Errorf("account %s: %w", account.Email, err)
	}
	return QuotaScope{Project: account.Project, Account: account.QuotaUser()}, nil
}
