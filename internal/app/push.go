package app

import (
	"context"

	"headroom/config"
	"headroom/internal/push"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
	"headroom/scheduler"
	"headroom/workers"
)

// newPush takes pushes in a process with [RoleWeb]; nil where the settings ask for
// none. It uses the store, which is opened later, only when one comes in.
func (a *App) newPush() (*push.Handler, error) {
	g, c := a.cfg.Push.Gmail, a.cfg.Push.Calendar
	if !g.On() && !c.On() {
		return nil, nil
	}
	o := push.Options{
		Store: pushStore{a}, Redis: a.redis.Short, KeyPrefix: a.cfg.Redis.LedgerPrefix, Calendar: c.On(),
		Log: a.opts.Log, Registerer: a.opts.Registry,
	}
	if g.On() {
		o.Gmail = push.Gmail{Subscription: g.Subscription, Audience: g.Audience.Reveal(), ServiceAccount: g.ServiceAccount, Issuer: issuer(a.cfg)}
	}
	return push.New(o)
}

// issuer is who signs the tokens of pushes.
func issuer(cfg config.Config) string {
	switch {
	case cfg.Push.Gmail.Issuer != "":
		return cfg.Push.Gmail.Issuer.Reveal()
	case cfg.Google.Endpoint != "":
		return cfg.Google.Endpoint.Reveal()
	}
	return push.Google
}

// pushStore is the process' store, once it is open.
type pushStore struct{ *App }

// PushMail implements [push.Store].
func (s pushStore) PushMail(ctx context.Context, email string, historyID uint64) (jobs.PushOutcome, error) {
	return s.store.PushMail(ctx, email, historyID)
}

// Channel implements [push.Store].
func (s pushStore) Channel(ctx context.Context, id string) (jobs.Channel, error) {
	return s.store.Channel(ctx, id)
}

// AddStray implements [push.Store].
func (s pushStore) AddStray(ctx context.Context, c jobs.Channel) error {
	return s.store.AddStray(ctx, c)
}

// PushChannel implements [push.Store].
func (s pushStore) PushChannel(ctx context.Context, id, resource string, number uint64, changed bool) (jobs.PushOutcome, error) {
	return s.store.PushChannel(ctx, id, resource, number, changed)
}

// watching is what the workers have Google tell of.
func (a *App) watching() workers.Watching {
	p := a.cfg.Push
	if !p.Gmail.On() && !p.Calendar.On() {
		return workers.Watching{}
	}
	return workers.Watching{Store: a.store, Topic: p.Gmail.Topic, Address: p.Calendar.Address.Reveal(), Shown: p.Calendar.Address.String()}
}

// watched is what the workers have Google tell of, by the settings.
func watched(cfg config.Config) (kinds []jobs.WatchKind) {
	if cfg.Push.Gmail.On() {
		kinds = append(kinds, jobs.WatchMail)
	}
	if cfg.Push.Calendar.On() {
		kinds = append(kinds, jobs.WatchCalendarList, jobs.WatchCalendar)
	}
	return kinds
}

// addWatches adds what sees when Google tells of changes no more.
func (a *App) addWatches() error {
	w, err := scheduler.NewWatches(scheduler.WatchOptions{
		Store: a.store, Watched: watched(a.cfg), Log: a.opts.Log, Registerer: a.opts.Registry,
	})
	if err != nil {
		return err
	}
	a.parts = append(a.parts, part{"watches", w.Run})
	return nil
}

// StoredWatches lists what Google tells of, of an account only if one is named, from
// after a key on; a limit of 0 lists all. The error names an account that is not
// known.
func StoredWatches(ctx context.Context, cfg config.Config, s *sqlite.Store, account string, after jobs.WatchKey, limit int) (all []jobs.Watch, err error) {
	if account != "" {
		known, err := KnownAccount(ctx, cfg, s, account)
		if err != nil {
			return nil, err
		}
		account = known.Email
	}
	for {
		page, err := s.Watches(ctx, account, after, limit)
		all = append(all, page...)
		if err != nil || len(page) == 0 || limit > 0 {
			return all, err
		}
		after = page[len(page)-1].WatchKey
	}
}

func (b apiBackend) Watches(ctx context.Context, account string, after jobs.WatchKey, limit int) ([]jobs.Watch, error) {
	return StoredWatches(ctx, b.cfg, b.store, account, after, limit)
}
