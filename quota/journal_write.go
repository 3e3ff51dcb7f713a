package quota

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// How a journal is written.
const (
	flushEvery   = 250 * time.Millisecond
	flushTimeout = 2 * time.Second
	maxCommands  = 1000 // in one pipeline

	keptNotes    = 100 // of refusals, and of everything else, per account
	refusalsLife = time.Hour
	notesLife    = 24 * time.Hour
	// bucketsPerSheet buckets of an account's, or a project's, stand in one hash.
	bucketsPerSheet = 60
)

// Run writes what was noted to Redis until ctx ends, and then the rest; it
// returns nil. While Redis does not answer, it keeps what fits in memory.
func (j *Journal) Run(ctx context.Context) error {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	learn := time.NewTicker(followEvery)
	defer learn.Stop()
	for {
		select {
		case <-tick.C:
			j.flush(ctx, false)
		case <-learn.C:
			j.learn(ctx)
		case <-ctx.Done():
			j.flush(context.WithoutCancel(ctx), true)
			return nil
		}
	}
}

// entry is a page on its way to Redis.
type entry struct {
	pageKey
	page
}

// flush writes what is ready, or everything. What could not be written is for the
// next time; after a failure in the middle some of it may be written twice.
func (j *Journal) flush(ctx context.Context, everything bool) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	entries := j.turn(everything)
	pipe := j.ledger.rdb.Pipeline()
	sheets := map[string]map[string]int64{} // of the projects in this pipeline
	done := 0
	for i, e := range entries {
		j.observe(e)
		j.write(ctx, pipe, e, sheets)
		if pipe.Len() < maxCommands && i < len(entries)-1 {
			continue
		}
		j.writeSheets(ctx, pipe, sheets)
		clear(sheets)
		if _, err := pipe.Exec(ctx); err != nil {
			break
		}
		done = i + 1
	}
	j.putBack(entries[done:])
}

// observe tells the metrics how full an account's limits are. Entries come here
// again after a failure, but without their usage.
func (j *Journal) observe(e entry) {
	p, err := j.ledger.plan(Caller{Project: e.project, User: e.user, Lane: Interactive}, e.api)
	if err == nil && e.usage != nil {
		j.metrics.headroom(e.pageKey, len(p.project.windows), e.usage)
	}
}

// turn begins new pages, and returns what is ready of the old ones: notes that no
// decision may join any more, and what was spent.
func (j *Journal) turn(everything bool) []entry {
	now := time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	var entries []entry
	for key, p := range j.pages {
		e := entry{pageKey: key, page: page{spent: p.spent, usage: p.usage}}
		var open []openNote
		for _, n := range p.notes {
			if everything || now.Sub(n.began) >= noteSpan {
				e.notes = append(e.notes, n)
			} else {
				open = append(open, n)
			}
		}
		if len(e.spent)+len(e.notes) > 0 {
			entries = append(entries, e)
		}
		if len(open) == 0 {
			delete(j.pages, key)
		} else {
			*p = page{notes: open}
		}
	}
	return entries
}

// putBack keeps entries that were not written for the next time, as far as there
// is room beside what came since.
func (j *Journal) putBack(entries []entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range entries {
		p := j.page(Caller{Project: e.project, User: e.user}, e.api)
		if p == nil {
			continue
		}
		p.spent = dropOldest(j, append(e.spent, p.spent...), maxSpent)
		p.notes = dropOldest(j, append(e.notes, p.notes...), maxNotes)
	}
}

// write adds an entry to a pipeline, and what it means to the project to sheets.
func (j *Journal) write(ctx context.Context, pipe redis.Pipeliner, e entry, sheets map[string]map[string]int64) {
	k, err := j.ledger.journalKeys(e.project, e.api, e.user)
	if err != nil {
		return // nothing is decided for a project without settings
	}
	own := map[string]map[string]int64{}
	for _, s := range e.spent {
		sheet, place := s.bucket/bucketsPerSheet, s.bucket%bucketsPerSheet
		for _, to := range []struct {
			sheets map[string]map[string]int64
			key    string
		}{{own, k.sheet(sheet)}, {sheets, k.projectSheet(sheet)}} {
			if to.sheets[to.key] == nil {
				to.sheets[to.key] = map[string]int64{}
			}
			to.sheets[to.key][field(place, s.lane, unitsField)] += s.units
			to.sheets[to.key][field(place, s.lane, callsField)] += s.calls
		}
		pipe.ZIncrBy(ctx, k.top(sheet), float64(s.units), k.user)
		pipe.Expire(ctx, k.top(sheet), j.ledger.sheetLife())
	}
	j.writeSheets(ctx, pipe, own)
	if n := len(e.spent); n > 0 {
		at := e.spent[n-1].bucket
		pipe.ZAdd(ctx, k.seen(), redis.Z{Score: float64(at), Member: k.user})
		pipe.ZRemRangeByScore(ctx, k.seen(), "-inf", fmt.Sprintf("(%d", at-3*bucketsPerSheet))
		pipe.Expire(ctx, k.seen(), j.ledger.sheetLife())
	}
	for _, n := range e.notes {
		key, life := k.notes(), notesLife
		if n.Kind == NoteRefused {
			key, life = k.refusals(), refusalsLife
		}
		pipe.RPush(ctx, key, n.encode())
		pipe.LTrim(ctx, key, -keptNotes, -1)
		pipe.Expire(ctx, key, life)
	}
}

func (j *Journal) writeSheets(ctx context.Context, pipe redis.Pipeliner, sheets map[string]map[string]int64) {
	for key, fields := range sheets {
		for name, n := range fields {
			if n != 0 {
				pipe.HIncrBy(ctx, key, name, n)
			}
		}
		pipe.Expire(ctx, key, j.ledger.sheetLife())
	}
}
