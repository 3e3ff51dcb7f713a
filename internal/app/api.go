package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"headroom/config"
	"headroom/internal/api"
	"headroom/internal/redisconn"
	"headroom/jobs"
	"headroom/quota"
)

// newAPI makes the HTTP interface of a process with [RoleWeb]. It uses the store
// only when it is asked something.
func (a *App) newAPI() *api.API {
	backend := apiBackend{a}
	i := api.New(api.Options{Backend: backend, Version: a.opts.Version, Log: a.opts.Log})
	backend.addEstimate(i)
	backend.addQuota(i)
	return i
}

// apiBackend does for the HTTP interface what the commands do, by the same
// functions, with what the process has open already.
type apiBackend struct{ *App }

var _ api.Backend = apiBackend{}

// An unavailableError says that what is needed does not answer now.
type unavailableError struct{ error }

func (e *unavailableError) Unwrap() error { return e.error }

// Status implements [api.Backend].
func (b apiBackend) Status(err error) int {
	is := func(target bool, status int) int {
		if target {
			return status
		}
		return 0
	}
	_, refused := errors.AsType[*RefusedError](err)
	_, unknownProject := errors.AsType[*UnknownProjectError](err)
	_, unknownName := errors.AsType[*UnknownNameError](err)
	_, noSync := errors.AsType[*noSyncError](err)
	_, unavailable := errors.AsType[*unavailableError](err)
	_, google := errors.AsType[*jobs.CallError](err)
	_, denied := errors.AsType[*quota.DeniedError](err)
	_, settings := errors.AsType[*config.InvalidError](err)
	return max(
		is(google, http.StatusBadGateway),
		is(denied || settings, http.StatusServiceUnavailable),
		is(refused || unknownProject, http.StatusUnprocessableEntity),
		is(unknownName, http.StatusNotFound),
		is(noSync, http.StatusConflict),
		is(unavailable || errors.Is(err, quota.ErrUnavailable), http.StatusServiceUnavailable),
	)
}

// operator steers with the process' own store and queue.
func (b apiBackend) operator() Operator {
	return Operator{Store: b.store, Queue: b.backfillQueue(), Log: b.opts.Log}
}

// redisAnswers reports why there is no Redis now: like a command, nothing is
// written then that needs it.
func (b apiBackend) redisAnswers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, redisconn.Timeout)
	defer cancel()
	if err := b.redis.Short.Ping(ctx).Err(); err != nil {
		return &unavailableError{fmt.Errorf("no Redis at %s: %w", b.cfg.Redis.URL, redisconn.Cause(err))}
	}
	return nil
}

func (b apiBackend) Accounts(ctx context.Context) ([]jobs.Account, error) {
	return b.store.Accounts(ctx)
}

func (b apiBackend) Account(ctx context.Context, email string) (jobs.Account, error) {
	return KnownAccount(ctx, b.cfg, b.store, email)
}

func (b apiBackend) AddAccount(ctx context.Context, email, project string, as api.Assignment) (jobs.Account, error) {
	return addAccount(ctx, b.cfg, b.store, email, project, Assignment(as))
}

func (b apiBackend) AssignAccount(ctx context.Context, email string, as api.Assignment) (jobs.Account, error) {
	return assignAccount(ctx, b.cfg, b.store, email, Assignment(as))
}

func (b apiBackend) Backfills(ctx context.Context, f jobs.JobFilter, afterID string, limit int) ([]jobs.Job, error) {
	return b.store.FindJobs(ctx, f, afterID, limit)
}

// Backfill finds a backfill by its id, which an address is not.
func (b apiBackend) Backfill(ctx context.Context, id string) (jobs.Job, error) {
	if !strings.HasPrefix(id, jobs.BackfillID("")) {
		return jobs.Job{}, missing("no backfill %s; an id begins with %q, and GET %s/backfills lists all", id, jobs.BackfillID(""), api.Path)
	}
	all, err := Backfills(ctx, b.store, id)
	if err != nil {
		return jobs.Job{}, err
	}
	return all[0], nil
}

func (b apiBackend) Start(ctx context.Context, email string, f jobs.Filter) (jobs.Job, bool, error) {
	if err := mayStart(ctx, b.cfg, b.store, email); err != nil {
		return jobs.Job{}, false, err
	}
	if err := b.redisAnswers(ctx); err != nil {
		return jobs.Job{}, false, err
	}
	started, err := b.operator().Start(ctx, b.cfg, email, f)
	return started.Job, started.Created, err
}

func (b apiBackend) Pause(ctx context.Context, id string) (jobs.Job, bool, error) {
	return b.steer(ctx, id, b.operator().Pause)
}

func (b apiBackend) Cancel(ctx context.Context, id string) (jobs.Job, bool, error) {
	return b.steer(ctx, id, b.operator().Cancel)
}

func (b apiBackend) Resume(ctx context.Context, id string) (jobs.Job, bool, error) {
	if err := b.redisAnswers(ctx); err != nil {
		return jobs.Job{}, false, err
	}
	return b.steer(ctx, id, b.operator().Resume)
}

// steer does to one backfill what an operator may do to all of an account.
func (b apiBackend) steer(ctx context.Context, id string, do func(context.Context, string) ([]Steered, error)) (jobs.Job, bool, error) {
	if _, err := b.Backfill(ctx, id); err != nil {
		return jobs.Job{}, false, err
	}
	all, err := do(ctx, id)
	if err != nil {
		return jobs.Job{}, false, err
	}
	return all[0].Job, all[0].Changed, nil
}

func (b apiBackend) RetryFailed(ctx context.Context, id string, f jobs.FailureFilter) (jobs.Job, int, error) {
	if _, err := b.Backfill(ctx, id); err != nil {
		return jobs.Job{}, 0, err
	}
	if err := b.redisAnswers(ctx); err != nil {
		return jobs.Job{}, 0, err
	}
	all, err := b.operator().RetryFailed(ctx, id, f)
	if err != nil {
		return jobs.Job{}, 0, err
	}
	return all[0].Job, all[0].Retried, nil
}

func (b apiBackend) Failures(ctx context.Context, id string, f jobs.FailureFilter, afterID string, limit int) ([]jobs.Failure, error) {
	if _, err := b.Backfill(ctx, id); err != nil {
		return nil, err
	}
	return b.store.Failures(ctx, id, f, afterID, limit)
}

func (b apiBackend) Sync(ctx context.Context, email string) (jobs.Job, bool, error) {
	if err := b.redisAnswers(ctx); err != nil {
		return jobs.Job{}, false, err
	}
	asked, err := startSync(ctx, b.cfg, b.store, b.redis, email, b.opts.Log)
	return asked.Job, asked.Started, err
}

func (b apiBackend) Messages(ctx context.Context, email string, f jobs.MessageFilter, afterID string, limit int) ([]jobs.Message, error) {
	account, err := b.Account(ctx, email)
	if err != nil {
		return nil, err
	}
	return b.store.FindMessages(ctx, account.Email, f, afterID, limit)
}

func (b apiBackend) Message(ctx context.Context, email, id string) (jobs.Message, error) {
	return StoredMessage(ctx, b.cfg, b.store, email, id)
}

func (b apiBackend) OpenMessage(ctx context.Context, email, id string) (jobs.Message, io.ReadCloser, error) {
	return OpenMessage(ctx, b.cfg, b.store, email, id)
}

// An UnknownProjectError says that the settings name no such project.
type UnknownProjectError struct{ error }

func (e *UnknownProjectError) Unwrap() error { return e.error }

func (b apiBackend) Attachments(ctx context.Context, email, id string) ([]jobs.Attachment, error) {
	return StoredAttachments(ctx, b.cfg, b.store, email, id)
}

func (b apiBackend) OpenAttachment(ctx context.Context, email, id, part string) (jobs.Attachment, io.ReadCloser, error) {
	return OpenAttachment(ctx, b.cfg, b.store, email, id, part)
}
