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
	"headroom/internal/redisconn"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
	"headroom/quota"
)

// An UnknownNameError says that what was asked about does not exist.
type UnknownNameError struct {
	error
	Account bool // it is an account that the store does not know
}

func (e *UnknownNameError) Unwrap() error { return e.error }

// A QuotaReader reads for people what quota there is and what became of it. It
// needs no running process: it asks Redis and the store, and charges nothing.
type QuotaReader struct {
	projects map[string]quota.Project
	store    *sqlite.Store // nil while nothing has been stored
	redis    *redisconn.Clients
	ledger   *quota.Ledger
	subject  subject
}

// subject is what is asked about: an account, or a whole project.
// User is whom the account's calls are counted for: its mailbox.
type subject struct{ account, project, user string }

// ReadQuota opens a reader for an account or a project; what has an @ is an
// account. The project of an account that is not in the store must be named. The
// error is an [*UnknownNameError] where there is no such account or project.
// Close the reader when done.
func ReadQuota(ctx context.Context, cfg config.Config, name, project string, log *zap.Logger) (r *QuotaReader, err error) {
	r = &QuotaReader{}
	if r.projects, err = Projects(cfg); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err, r = errors.Join(err, r.Close()), nil
		}
	}()
	if r.store, err = OpenStore(ctx, cfg, log); err != nil && !errors.Is(err, ErrNoStore) {
		return r, err
	}
	if r.subject, err = r.find(ctx, cfg, name, project); err != nil {
		return r, err
	}
	redisconn.RouteLog(log)
	if r.redis, err = connect(ctx, cfg.Redis.URL, 1, log); err != nil {
		return r, err
	}
	r.ledger, err = quota.NewLedger(quota.Options{
		Redis: r.redis.Ledger, Projects: r.projects, Scale: cfg.Scale, KeyPrefix: cfg.Redis.LedgerPrefix, Plain: true,
	})
	return r, err
}

// Close gives back what the reader has opened.
func (r *QuotaReader) Close() error {
	var errs []error
	if r.redis != nil {
		errs = append(errs, r.redis.Close())
	}
	if r.store != nil {
		errs = append(errs, r.store.Close())
	}
	return errors.Join(errs...)
}

// IsAccount reports whether an account is asked about, and not a project.
func (r *QuotaReader) IsAccount() bool { return r.subject.account != "" }

func (r *QuotaReader) find(ctx context.Context, cfg config.Config, name, project string) (subject, error) {
	s := subject{project: name}
	if strings.Contains(name, "@") {
		email, err := jobs.ParseAddress(name)
		if err != nil {
			return s, &UnknownNameError{error: err}
		}
		s = subject{email, project, email}
		if s.project == "" {
			account, err := r.account(ctx, cfg, email)
			if err != nil {
				return s, err
			}
			s.project, s.user = account.Project, account.QuotaUser()
		}
	} else if project != "" && project != name {
		return s, &UnknownNameError{error: fmt.Errorf("%s is no e-mail address; --project goes with one", name)}
	}
	if _, ok := r.projects[s.project]; !ok {
		return s, &UnknownNameError{error: fmt.Errorf("unknown project %s, the settings name %s", s.project, named(r.projects))}
	}
	return s, nil
}

// account looks an account up.
func (r *QuotaReader) account(ctx context.Context, cfg config.Config, email string) (jobs.Account, error) {
	if r.store == nil {
		return jobs.Account{}, &UnknownNameError{unknownAccount(cfg, email), true}
	}
	account, err := r.store.Account(ctx, email)
	if errors.Is(err, jobs.ErrNotFound) {
		return account, &UnknownNameError{fmt.Errorf("%w; or name the project whose quota it spends with --project", unknownAccount(cfg, email)), true}
	}
	return account, err
}

func named(projects map[string]quota.Project) string {
	if len(projects) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(projects)), ", ")
}
