package control

import (
	"context"
	"errors"
	"maps"
	"slices"

	"headroom/internal/blob"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

// Body is a stored body that is missing or damaged.
type Body = sqlite.Body

// StoreCheck is what a check of the store has found, and what its repair has done. A
// body is what one row of a message or attachment refers to.
type StoreCheck struct {
	Blobs        int64       `json:"blobs"` // that rows refer to
	Bytes        int64       `json:"bytes"` // that were read
	Missing      []Body      `json:"missing"`
	Damaged      []Body      `json:"damaged"`
	Unreferenced []blob.File `json:"unreferenced"`

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

// CheckStore holds the blobs of the store to its rows. With repair it has backfills
// fetch again what is lost, under the same quota as all they fetch, sets damaged files
// aside, and removes those without a row. Nothing is changed unless Redis is there for
// that.
func (c *Control) CheckStore(ctx context.Context, repair bool, progress func(done, all int64)) (found StoreCheck, err error) {
	s, err := c.store(ctx)
	if err != nil {
		return found, err
	}
	blobs := Blobs(c.cfg)
	if found, err = checkBodies(ctx, s, blobs, progress); err != nil || found.Sound() || !repair {
		return found, err
	}
	found.Repair = &StoreRepair{Jobs: []string{}, Left: []Left{}}
	if err := c.fetchAgain(ctx, s, blobs, found); err != nil {
		return found, err
	}
	found.Repair.Removed, err = blobs.Remove(ctx, found.Unreferenced)
	return found, err
}

// checkBodies reads all bodies and holds them to the rows. It takes 100 bytes of memory for
// each, and as long as reading them does; others may use the store meanwhile. What is
// younger than an hour may be without a row. Progress, if not nil, is called with how
// many of the bodies that rows refer to were read, and of how many.
func checkBodies(ctx context.Context, s *sqlite.Store, blobs *blob.Folder, progress func(done, all int64)) (c StoreCheck, err error) {
	c = StoreCheck{Missing: []Body{}, Damaged: []Body{}, Unreferenced: []blob.File{}}
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

func (c *Control) fetchAgain(ctx context.Context, s *sqlite.Store, blobs *blob.Folder, found StoreCheck) error {
	lost, r := map[string][]Body{}, found.Repair
	for _, b := range slices.Concat(found.Missing, found.Damaged) {
		lost[b.Account] = append(lost[b.Account], b)
	}
	if len(lost) == 0 {
		return nil
	}
	if err := c.claim(ctx, s); err != nil {
		return err
	}
	aside := map[string]bool{}
	for _, b := range found.Damaged {
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
			c.put(ctx, job)
			r.Jobs = append(r.Jobs, job.ID)
		}
		for _, message := range slices.Sorted(maps.Keys(left)) {
			r.Left = append(r.Left, Left{account, message, left[message]})
		}
	}
	return nil
}

// TakeQueues makes the store the owner of the queues although they hold tasks of
// another store, unless a process of that one runs.
func (c *Control) TakeQueues(ctx context.Context) error {
	s, err := c.store(ctx)
	if err != nil {
		return err
	}
	r, err := c.reach(ctx)
	if err != nil {
		return err
	}
	q, err := QueueOwner(ctx, c.cfg, r, s, c.log)
	if err != nil {
		return err
	}
	return q.Take(ctx)
}
