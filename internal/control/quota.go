package control

import (
	"context"
	"errors"
	"strings"

	"headroom/internal/control/quotaview"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

// Quota finds what there is to read about the quota of an account or a project; what
// has an @ is an account. The project of an account that is not in the store must be
// named. It charges nothing.
func (c *Control) Quota(ctx context.Context, name, project string) (*quotaview.Reader, error) {
	projects, err := c.projects()
	if err != nil {
		return nil, err
	}
	s, err := c.store(ctx)
	if err != nil && !errors.Is(err, ErrNoStore) {
		return nil, err
	}
	r := &quotaview.Reader{Store: s, Project: name}
	if strings.Contains(name, "@") {
		if r.Account, err = jobs.ParseAddress(name); err != nil {
			return nil, &Error{Kind: Unknown, Err: err}
		}
		r.Project, r.User = project, r.Account
		if project == "" {
			account, err := c.quotaAccount(ctx, s, r.Account)
			if err != nil {
				return nil, err
			}
			r.Project, r.User = account.Project, account.QuotaUser()
		}
	} else if project != "" && project != name {
		return nil, Errorf(Unknown, "%s is no e-mail address; --project goes with one", name)
	}
	of, ok := projects[r.Project]
	if !ok {
		return nil, Errorf(Unknown, "unknown project %s, the settings name %s", r.Project, named(projects))
	}
	r.Lists = of.Lists
	if _, err := c.reach(ctx); err != nil {
		return nil, err
	}
	r.Ledger, err = c.ledger()
	return r, err
}

// quotaAccount looks up an account whose project is not named. There may be no store.
func (c *Control) quotaAccount(ctx context.Context, s *sqlite.Store, email string) (jobs.Account, error) {
	if s == nil {
		return jobs.Account{}, c.unknownAccount(email)
	}
	account, err := s.Account(ctx, email)
	if errors.Is(err, jobs.ErrNotFound) {
		return account, missing("or name the project whose quota it spends with --project", "%w", c.unknownAccount(email))
	}
	return account, err
}
