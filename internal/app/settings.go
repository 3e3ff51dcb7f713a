package app

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"headroom/internal/control"
	"headroom/internal/service"
	"headroom/internal/store/sqlite"
	"headroom/quota"
)

// How often a process looks whether the ledger goes by the store's settings, and
// how long a look may take.
const (
	settingsPeriod  = 2 * time.Second
	settingsTimeout = 5 * time.Second
)

// A publisher keeps the ledger's live settings those of the store. Whoever
// changes settings publishes them, and the processes learn of them with their
// next decision; the publisher is for a Redis that has lost them, or did not
// answer when they were changed. Where nothing was ever set it does nothing.
type publisher struct {
	store  *sqlite.Store
	ledger *quota.Ledger
	apis   map[[2]string]bool // project and API that the ledger knows
	log    *zap.Logger
	told   map[[2]string]uint32 // revisions of Redis that the store does not know
}

func newPublisher(s *sqlite.Store, ledger *quota.Ledger, projects map[string]quota.Project, log *zap.Logger) *publisher {
	p := &publisher{store: s, ledger: ledger, log: log.Named("settings"), apis: map[[2]string]bool{}, told: map[[2]string]uint32{}}
	for name, project := range projects {
		for _, list := range project.Lists {
			p.apis[[2]string{name, list.API}] = true
		}
	}
	return p
}

// Run looks at once and then every settingsPeriod, until ctx ends, see [service.Loop].
func (p *publisher) Run(ctx context.Context) error {
	return service.Loop{
		Name: "read quota settings", Every: settingsPeriod, Timeout: settingsTimeout, RoundFunc: p.look, Log: p.log,
	}.Run(ctx)
}

// look publishes the settings that the ledger lacks.
func (p *publisher) look(ctx context.Context) error {
	all, err := p.store.Settings(ctx)
	for _, s := range all {
		if !p.apis[[2]string{s.Project, s.API}] {
			continue
		}
		if err := p.compare(ctx, s); err != nil && ctx.Err() == nil {
			p.log.Warn("quota settings not published; the next look tries again",
				zap.String("project", s.Project), zap.String("api", s.API), zap.Uint32("revision", s.Revision), zap.Error(err))
		}
	}
	return err
}

// compare publishes one project's settings for one API if the ledger goes by
// older ones. Others of the same or a later revision come from another store.
func (p *publisher) compare(ctx context.Context, s sqlite.Setting) error {
	want, err := control.LiveOf(s)
	if err != nil {
		return err
	}
	now, err := p.ledger.Live(ctx, s.Project, s.API)
	if err != nil {
		return err
	}
	fields := []zap.Field{zap.String("project", s.Project), zap.String("api", s.API),
		zap.Uint32("revision", s.Revision), zap.Uint32("revision_in_redis", now.Revision)}
	switch key := [2]string{s.Project, s.API}; {
	case now.Revision < want.Revision:
		if _, err := p.ledger.Publish(ctx, s.Project, s.API, want); err != nil {
			return err
		}
		p.log.Info("quota settings published", fields...)
	case !sameLive(now, want) && p.told[key] != now.Revision:
		p.told[key] = now.Revision
		p.log.Warn("Redis has quota settings that this store does not know; they hold until the next headroom quota set", fields...)
	}
	return nil
}

// sameLive reports whether two live settings are the same, revision and all.
func sameLive(a, b quota.Live) bool {
	return a.Revision == b.Revision && a.Mode == b.Mode && slices.Equal(a.Changes, b.Changes)
}
