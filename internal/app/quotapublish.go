package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"headroom/config"
	"headroom/internal/redisconn"
	"headroom/quota"
)

// openLedger makes a ledger for an operator's command. It asks Redis only when
// it is used.
func openLedger(cfg config.Config, projects map[string]quota.Project) (*quota.Ledger, func() error, error) {
	o, err := redis.ParseURL(cfg.Redis.URL.Reveal())
	if err != nil {
		// The error of the parser may quote the password.
		return nil, nil, fmt.Errorf("redis.url %s is not the URL of a Redis; its form is redis://USER:PASSWORD@HOST:PORT/DB", cfg.Redis.URL)
	}
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.DialerRetries = 1
	rdb := redis.NewClient(quota.ClientOptions(o))
	ledger, err := quota.NewLedger(quota.Options{Redis: rdb, Projects: projects, Scale: cfg.Scale, KeyPrefix: cfg.Redis.LedgerPrefix})
	if err != nil {
		return nil, nil, errors.Join(err, rdb.Close())
	}
	return ledger, rdb.Close, nil
}

// revisions asks Redis by which revisions the processes go.
func revisions(ctx context.Context, ledger *quota.Ledger, project string, apis []string) (map[string]uint32, error) {
	ctx, cancel := context.WithTimeout(ctx, redisconn.Timeout)
	defer cancel()
	known := map[string]uint32{}
	for _, api := range apis {
		live, err := ledger.Live(ctx, project, api)
		if err != nil {
			return known, err
		}
		known[api] = live.Revision
	}
	return known, nil
}

// publish tells the processes what holds now.
func publish(ctx context.Context, ledger *quota.Ledger, set QuotaSet) error {
	ctx, cancel := context.WithTimeout(ctx, redisconn.Timeout)
	defer cancel()
	for _, a := range set.APIs {
		if a.Revision == 0 {
			continue
		}
		if _, err := ledger.Publish(ctx, set.Project, a.API, a.live); err != nil {
			return err
		}
	}
	return nil
}
