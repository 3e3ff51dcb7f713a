package quota

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// What a journal keeps in memory until it is written, or for as long as Redis
// does not answer.
const (
	maxPages = 10_000 // accounts
	maxSpent = 32     // per account: buckets and lanes with units
	maxNotes = 16     // per account
	noteSpan = time.Second
)

// JournalOptions configure a [Journal]. All are optional.
type JournalOptions struct {
	Process    string // names the process to people
	Registerer prometheus.Registerer
}

// A Journal lets people read what a ledger decided and why: who spent what, what
// was refused, what Google refused. It is the journal of the one ledger whose
// [Options] name it.
//
// Decisions are noted in memory and written to Redis by [Journal.Run] a few times
// a second, so no decision waits for it. It is for people, and nothing depends on
// it: what memory has no room for is dropped, the oldest first, and counted.
type Journal struct {
	process string
	metrics *journalMetrics
	ledger  *Ledger // set by NewLedger

	mu      sync.Mutex
	pages   map[pageKey]*page
	lowered map[lowered]struct{}
}

type pageKey struct{ project, api, user string }

// page is what happened to an account since the last time it was written.
type page struct {
	spent []outlay
	notes []openNote
	usage []Usage // at the last admission
}

// outlay is what a lane spent in a bucket.
type outlay struct {
	bucket       int64
	lane         Lane
	calls, units int64
}

// openNote is a note that like decisions may still join.
type openNote struct {
	Note
	began time.Time // on the local clock
}

// NewJournal returns a journal, to be named by a ledger's [Options].
func NewJournal(o JournalOptions) *Journal {
	return &Journal{process: o.Process, metrics: newJournalMetrics(o.Registerer), pages: map[pageKey]*page{}, lowered: map[lowered]struct{}{}}
}

// decided notes what became of a call. Looks are not noted. A nil journal notes
// nothing, here and in the other methods.
func (j *Journal) decided(c Caller, api string, cost int64, d Decision, err error) {
	if j == nil {
		return
	}
	if err == nil {
		j.admitted(c, api, d)
		return
	}
	if denied, ok := errors.AsType[*DeniedError](err); ok {
		at := denied.At.Add(-denied.RetryAfter)
		var about Cooldown
		if denied.Cooldown != nil {
			about = *denied.Cooldown
		}
		j.note(c, api, Note{
			Scope: about.Scope, Reason: about.Reason, Feature: about.Feature, Words: about.Words,
			At: at, Kind: NoteRefused, Cost: denied.Cost, Limit: denied.Limit, Bound: denied.Bound, Used: denied.Used,
			Ceiling: denied.Ceiling, Wait: denied.RetryAfter, Until: denied.At, Waits: denied.RetryAfter <= c.MaxWait,
		})
	} else if errors.Is(err, ErrNeverFits) {
		j.note(c, api, Note{At: time.Now(), Kind: NoteNever, Cost: cost})
	} else if errors.Is(err, ErrUnavailable) {
		j.note(c, api, Note{At: time.Now(), Kind: NoteAway, Cost: cost})
	}
}

func (j *Journal) admitted(c Caller, api string, d Decision) {
	at := d.Charge.At
	if at.IsZero() {
		at = time.Now()
	}
	usage := d.Usage
	if d.Local {
		usage = nil // it is what this process counted
		j.note(c, api, Note{At: at, Kind: NoteLocal, Units: d.Charge.Units})
	}
	if d.Charge.Units == 0 {
		return
	}
	j.spend(c, api, at, d.Charge.Units, usage)
}

// answered notes a refusal of Google's, and until when it closed the account or
// the project; zero: it did not.
func (j *Journal) answered(charge Charge, r Refusal, until time.Time) {
	if j == nil || r.Scope == ScopeNone {
		return
	}
	if !until.IsZero() && r.Feature == "" {
		j.follow(charge, r.Scope)
	}
	j.note(charge.Caller, charge.API, Note{
		At: time.Now(), Kind: NoteGoogle, Cost: charge.Units, Wait: r.Wait, Until: until, Scope: r.Scope, Reason: r.Reason, Feature: r.Feature, Words: r.Words,
	})
}

func (j *Journal) spend(c Caller, api string, at time.Time, units int64, usage []Usage) {
	bucket := at.UnixMicro() / j.ledger.bucketWidth().Microseconds()
	j.mu.Lock()
	defer j.mu.Unlock()
	p := j.page(c, api)
	if p == nil {
		return
	}
	if usage != nil {
		p.usage = usage
	}
	for i := len(p.spent) - 1; i >= 0; i-- {
		if s := &p.spent[i]; s.bucket == bucket && s.lane == c.Lane {
			s.calls, s.units = s.calls+1, s.units+units
			return
		}
	}
	p.spent = append(p.spent, outlay{bucket, c.Lane, 1, units})
	p.spent = dropOldest(j, p.spent, maxSpent)
}

// note adds a note for one call.
func (j *Journal) note(c Caller, api string, n Note) {
	n.Lane, n.Last, n.Calls, n.Process = c.Lane, n.At, 1, j.process
	now := time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	p := j.page(c, api)
	if p == nil {
		return
	}
	for i := len(p.notes) - 1; i >= 0; i-- {
		if old := &p.notes[i]; now.Sub(old.began) < noteSpan && old.subject() == n.subject() {
			old.add(n)
			return
		}
	}
	p.notes = append(p.notes, openNote{n, now})
	p.notes = dropOldest(j, p.notes, maxNotes)
}

// page returns the account's page, or nil if there is no room for another.
func (j *Journal) page(c Caller, api string) *page {
	key := pageKey{c.Project, api, lower(c.User)}
	p := j.pages[key]
	if p == nil {
		if len(j.pages) >= maxPages {
			j.metrics.dropped.Inc()
			return nil
		}
		p = &page{}
		j.pages[key] = p
	}
	return p
}

// dropOldest leaves the last n entries, and counts those that it drops.
func dropOldest[T any](j *Journal, entries []T, n int) []T {
	drop := max(0, len(entries)-n)
	j.metrics.dropped.Add(float64(drop))
	return entries[drop:]
}
