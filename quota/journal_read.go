package quota

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Spender is an account and what it spent lately.
type Spender struct {
	User  string `json:"account"`
	Units int64  `json:"units"`
}

// Notes returns what the journals of all processes tell of an account, by when it
// ended: like decisions that followed each other closely are one note. Calls that
// were admitted are told of for some minutes only.
func (l *Ledger) Notes(ctx context.Context, project, user, api string, now time.Time) ([]Note, error) {
	k, err := l.journalKeys(project, api, user)
	if err == nil {
		err = checkUser(user)
	}
	if err != nil {
		return nil, err
	}
	pipe := l.rdb.Pipeline()
	lists := []*redis.StringSliceCmd{
		pipe.LRange(ctx, k.refusals(), 0, -1),
		pipe.LRange(ctx, k.notes(), 0, -1),
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("notes about %s: %w", user, unavailable(err))
	}
	var notes []Note
	for _, list := range lists {
		for _, text := range list.Val() {
			n, err := decodeNote(text)
			if err != nil {
				return nil, fmt.Errorf("notes about %s: %w", user, err)
			}
			notes = append(notes, n)
		}
	}
	spent, err := l.sheets(ctx, now, 3*bucketsPerSheet, k.sheet)
	if err != nil {
		return nil, fmt.Errorf("notes about %s: %w", user, err)
	}
	width := l.bucketWidth()
	for _, s := range spent {
		if s.calls > 0 {
			at := time.UnixMicro(s.bucket * width.Microseconds())
			notes = append(notes, Note{At: at, Last: at.Add(width), Kind: NoteAdmitted, Lane: s.lane, Calls: s.calls, Units: s.units})
		}
	}
	for i := range notes {
		notes[i].API = api
	}
	return joined(notes, time.Minute), nil
}

// Spent returns how much each lane has spent in the windows of a caller's limits
// for an API, as far as the journals know. What processes without a journal spent
// is missing.
func (l *Ledger) Spent(ctx context.Context, c Caller, api string, now time.Time) (map[string]map[Lane]int64, error) {
	p, err := l.plan(c, api)
	if err != nil {
		return nil, err
	}
	k, err := l.journalKeys(c.Project, api, c.User)
	if err != nil {
		return nil, err
	}
	byLimit := map[string]map[Lane]int64{}
	for _, of := range []struct {
		windows []window
		sheet   func(int64) string
	}{{p.project.windows, k.projectSheet}, {p.user.windows, k.sheet}} {
		var longest int64
		for _, w := range of.windows {
			longest = max(longest, w.buckets)
		}
		spent, err := l.sheets(ctx, now, longest, of.sheet)
		if err != nil {
			return nil, fmt.Errorf("what was spent: %w", err)
		}
		newest := now.UnixMicro() / p.width
		for _, w := range of.windows {
			units := map[Lane]int64{}
			for _, s := range spent {
				if s.bucket >= newest-w.buckets {
					units[s.lane] += s.units
				}
			}
			byLimit[w.limit] = units
		}
	}
	return byLimit, nil
}

// Spenders returns how many accounts of a project have spent in the last minute
// of quota time, and the n that spent most in it or in the rest of the minute
// before.
func (l *Ledger) Spenders(ctx context.Context, project, api string, now time.Time, n int) (count int64, top []Spender, err error) {
	k, err := l.journalKeys(project, api, "")
	if err != nil {
		return 0, nil, err
	}
	bucket := now.UnixMicro() / l.bucketWidth().Microseconds()
	sheet := bucket / bucketsPerSheet
	pipe := l.rdb.Pipeline()
	counted := pipe.ZCount(ctx, k.seen(), fmt.Sprint(bucket-bucketsPerSheet), "+inf")
	before := pipe.ZRevRangeWithScores(ctx, k.top(sheet-1), 0, int64(4*n))
	current := pipe.ZRevRangeWithScores(ctx, k.top(sheet), 0, int64(4*n))
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, nil, fmt.Errorf("who spends: %w", unavailable(err))
	}
	units := map[string]int64{}
	for _, z := range append(before.Val(), current.Val()...) {
		units[fmt.Sprint(z.Member)] += int64(z.Score)
	}
	for user, u := range units {
		if u > 0 {
			top = append(top, Spender{user, u})
		}
	}
	slices.SortFunc(top, func(a, b Spender) int {
		if a.Units != b.Units {
			return int(b.Units - a.Units)
		}
		if a.User < b.User {
			return -1
		}
		return 1
	})
	return counted.Val(), top[:min(n, len(top))], nil
}

// sheets reads what was spent in the newest bucket and so many before it.
func (l *Ledger) sheets(ctx context.Context, now time.Time, buckets int64, key func(int64) string) ([]outlay, error) {
	newest := now.UnixMicro() / l.bucketWidth().Microseconds()
	oldest := newest - buckets
	first, last := oldest/bucketsPerSheet, newest/bucketsPerSheet
	pipe := l.rdb.Pipeline()
	var hashes []*redis.MapStringStringCmd
	for n := first; n <= last; n++ {
		hashes = append(hashes, pipe.HGetAll(ctx, key(n)))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, unavailable(err)
	}
	type place struct {
		bucket int64
		lane   Lane
	}
	found := map[place]*outlay{}
	for i, hash := range hashes {
		for name, text := range hash.Val() {
			at, lane, what, ok := readField(name)
			var n int64
			if _, err := fmt.Sscan(text, &n); err != nil || !ok {
				continue
			}
			bucket := (first+int64(i))*bucketsPerSheet + at
			if bucket < oldest {
				continue
			}
			s := found[place{bucket, lane}]
			if s == nil {
				s = &outlay{bucket: bucket, lane: lane}
				found[place{bucket, lane}] = s
			}
			if what == unitsField {
				s.units += n
			} else {
				s.calls += n
			}
		}
	}
	all := make([]outlay, 0, len(found))
	for _, s := range found {
		all = append(all, *s)
	}
	return all, nil
}

// bucketWidth is how long a bucket lasts on the clock.
func (l *Ledger) bucketWidth() time.Duration { return l.buckets.width / time.Duration(l.scale) }
