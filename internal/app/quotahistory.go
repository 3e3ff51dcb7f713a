package app

import (
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/store/sqlite"
	"headroom/quota"
)

// QuotaHistory returns what was ever set of a project's quota settings, or of an
// account's, the oldest first. The error is a [*RefusedError] when there is no
// such project.
func QuotaHistory(ctx context.Context, cfg config.Config, target string, log *zap.Logger) (history []sqlite.Setting, err error) {
	scope, err := scopeOf(ctx, cfg, target, log)
	if err != nil {
		return nil, err
	}
	s, err := OpenStore(ctx, cfg, log)
	if errors.Is(err, ErrNoStore) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	all, err := s.SettingHistory(ctx, scope.Project)
	if err != nil || scope.Account == "" {
		return all, err
	}
	before := map[string][]quota.Change{} // the account's, by API
	for _, row := range all {
		live, err := liveOf(row)
		if err != nil {
			return nil, err
		}
		own := slices.DeleteFunc(live.Changes, func(c quota.Change) bool { return c.User != scope.Account })
		if !sameChanges(before[row.API], own) {
			history = append(history, row)
		}
		before[row.API] = own
	}
	return history, nil
}
