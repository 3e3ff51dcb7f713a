package app

import (
	"context"
	"errors"
	"maps"
	"slices"

	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/blob"
	"headroom/internal/redisconn"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

// StoreCheck is what a check of the store has found, and what its repair has done. A
// body is what one row of a message or attachment refers to.
type StoreCheck struct {
	Blobs        int64         `json:"blobs"` // that rows refer to
	Bytes        int64         `json:"bytes"` // that were read
	Missing      []sqlite.Body `json:"missing"`
	Damaged      []sqlite.Body `json:"damaged"`
	Unreferenced []blob.File   `json:"unreferenced"`

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

// Sound reports whether nothing is wrong.
func (c StoreCheck) Sound() bool { return len(c.Missing)+len(c.Damaged)+len(c.Unreferenced) == 0 }

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
	blobs := Blobs(cfg)
	if c, err = checkBodies(ctx, s, blobs, progress); err != nil || c.Sound() || !repair {
		return c, err
	}
	c.Repair = &StoreRepair{Jobs: []string{}, Left: []Left{}}
	if err := c.Repair.fetchAgain(ctx, cfg, s, blobs, c, log); err != nil {
		return c, err
	}
	c.Repair.Removed, err = blobs.Remove(ctx, c.Unreferenced)
	return c, err
}

// checkBodies reads all bodies and holds them to the rows. It takes 100 bytes of memory for
// each, and as long as reading them does; others may use the store meanwhile. What is
// younger than an hour may be without a row. Progress, if not nil, is called with how
// many of the bodies that rows refer to were read, and of how many.
func checkBodies(ctx context.Context, s *sqlite.Store, blobs *blob.Folder, progress func(done, all int64)) (c StoreCheck, err error) {
	c = StoreCheck{Missing: []sqlite.Body{}, Damaged: []sqlite.Body{}, Unreferenced: []blob.File{}}
	sums, err := s.BodySums(ctx)
	if err != nil {
		return c, err
	}
	c.Blobs = int64(len(sums))
	missing, damaged := map[string]bool{}, map[string]bool{}
	for i, sum := range sums {
		size, err := blobs.Check(ctx, sum)
		switch {
		case ctx.Err() != nil:
			return c, ctx.Err()
		case errors.Is(err, jobs.ErrNotFound):
			missing[sum] = true
		case errors.Is(err, jobs.ErrDamaged):
			damaged[sum] = true
		case err != nil:
			return c, err
		}
		c.Bytes += size
		if progress != nil {
			progress(int64(i+1), c.Blobs)
		}
	}
	if len(missing)+len(damaged) > 0 {
		lost, err := s.BodiesOf(ctx, func(sum string) bool { return missing[sum] || damaged[sum] })
		if err != nil {
			return c, err
		}
		for _, b := range lost {
			if missing[b.SHA256] {
				c.Missing = append(c.Missing, b)
			} else {
				c.Damaged = append(c.Damaged, b)
			}
		}
	}
	c.Unreferenced, err = blobs.Strays(ctx, func(sum string) bool {
		_, known := slices.BinarySearch(sums, sum)
		return known
	})
	return c, err
}

func (r *StoreRepair) fetchAgain(ctx context.Context, cfg config.Config, s *sqlite.Store, blobs *blob.Folder, c StoreCheck, log *zap.Logger) (err error) {
	lost := map[string][]sqlite.Body{}
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
		if err := blobs.SetAside(b.SHA256); err != nil {
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
