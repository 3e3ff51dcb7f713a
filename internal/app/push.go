package app

import (
	"headroom/config"
	"headroom/internal/push"
	"headroom/workers"
)

// newPush takes pushes in a process with [RoleWeb]; nil if the settings ask for none.
func (a *App) newPush() (*push.Handler, error) {
	g, c := a.cfg.Push.Gmail, a.cfg.Push.Calendar
	if !g.On() && !c.On() {
		return nil, nil
	}
	o := push.Options{
		Store: a.store, Redis: a.redis.Short, KeyPrefix: a.cfg.Redis.LedgerPrefix, Calendar: c.On(),
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

// watching is what the workers ask Google to push.
func (a *App) watching() workers.Watching {
	p := a.cfg.Push
	if !p.Gmail.On() && !p.Calendar.On() {
		return workers.Watching{}
	}
	return workers.Watching{Store: a.store, Topic: p.Gmail.Topic, Address: p.Calendar.Address.Reveal(), Shown: p.Calendar.Address.String()}
}
