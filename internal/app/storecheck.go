package app

import (
	"context"
	"errors"
	"maps"
	"slices"

	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/redisconn"
	"headroom/internal/store/sqlite"
)

// StoreCheck is what a check of the store has found, and what its repair has done.
type StoreCheck struct {
	sqlite.Checked
	Repair *StoreRepair `json:"repair,omitempty"`
}

// StoreRepair is what the repair of a store has done.
type StoreRepair struct {
	SetAside int      `json:"set_aside"` // damaged files
	Removed  int      `json:"removed"`   // files without a row
	Fetching int      `json:"fetching"`  // messages that backfills fetch again
	Jobs     []string `json:"jobs"`      // these backfills
	Left     []Left   `json:"left"`      // messages that none fetches
}

// Left is a message that is not fetched again, and why.
type Left struct {
	Account string `json:"account"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
}

// OK reports whether nothing is wrong, or nothing is left to be done.
func (c StoreCheck) OK() bool {
	return c.Sound() || c.Repair != nil && len(c.Repair.Left) == 0
}

// CheckStore holds the blobs of the settings' store to its rows. With repair it has
// backfills fetch again what is lost, under the same quota as all they fetch, sets
// damaged files aside, and removes those without a row. Nothing is changed unless
// Redis is there for that.
func CheckStore(ctx context.Context, cfg config.Config, repair bool, log *zap.Logger, progress func(done, all int64)) (c StoreCheck, err error) {
	s, err := OpenStore(ctx, cfg, log)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if c.Checked, err = s.Check(ctx, progress); err != nil || c.Sound() || !repair {
		return c, err
	}
	c.Repair = &StoreRepair{Jobs: []string{}, Left: []Left{}}
	if err := c.Repair.fetchAgain(ctx, cfg, s, c.Checked, log); err != nil {
		return c, err
	}
	c.Repair.Removed, err = s.RemoveStrays(ctx, c.Unreferenced)
	return c, err
}

func (r *StoreRepair) fetchAgain(ctx context.Context, cfg config.Config, s *sqlite.Store, c sqlite.Checked, log *zap.Logger) (err error) {
	lost := map[string][]sqlite.LostBody{}
	for _, b := range slices.Concat(c.Missing, c.Damaged) {
		lost[b.Account] = append(lost[b.Account], b)
	}
	if len(lost) == 0 {
		return nil
	}
	redisconn.RouteLog(log)
	redis, err := connectQueues(ctx, cfg, s, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, redis.Close()) }()
	operator := Operator{Store: s, Queue: queuesByKind(redis, cfg), Log: log}

	aside := map[string]bool{}
	for _, b := range c.Damaged {
		if aside[b.SHA256] {
			continue
		}
		// First, or else what is fetched again would be taken for stored.
		if err := s.SetAside(b.SHA256); err != nil {
			return err
		}
		aside[b.SHA256] = true
	}
	r.SetAside = len(aside)
	for _, account := range slices.Sorted(maps.Keys(lost)) {
		resumed, fetching, left, err := s.FetchAgain(ctx, account, lost[account])
		if err != nil {
			return err
		}
		r.Fetching += fetching
		for _, job := range resumed {
			operator.put(ctx, job)
			r.Jobs = append(r.Jobs, job.ID)
		}
		for _, message := range slices.Sorted(maps.Keys(left)) {
			r.Left = append(r.Left, Left{account, message, left[message]})
		}
	}
	return nil
}
