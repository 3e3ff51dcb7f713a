package quota

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// landTimeout bounds for how long telling the ledger of an answer holds up whoever
// reads it.
const landTimeout = time.Second

// A trip is one request on its way: what it got from the ledger, and what the
// ledger is to be told at its end.
type trip struct {
	ledger   *Ledger
	ctx      context.Context // of the request
	charge   Charge
	parts    int64      // of a batch; else 0
	features []string   // that the request's methods are part of
	place    *Departure // nil: none
	done     func()     // lets go of the request's own context; nil: there is none yet

	ended    sync.Once
	mu       sync.Mutex
	bytes    int64       // of the answer's body
	refusals []Refusal   // the longest of each scope
	reader   *partReader // of the parts' answers; nil: there are none to be read
}

// user is whose place the trip needs.
func (f *trip) user() flightUser {
	c := f.charge.Caller
	return flightUser{f.ledger.books[projectAPI{c.Project, f.charge.API}], lower(c.User)}
}

// leavePlace gives the place back before the request was sent.
func (f *trip) leavePlace() {
	if f.place == nil {
		return
	}
	ctx, cancel := f.landing()
	defer cancel()
	_ = f.place.Land(ctx, 0, Refusal{}) // at worst it is free some seconds later
	f.place = nil
}

// landing is the context of what is told to the ledger although the request's own
// may have ended.
func (f *trip) landing() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(f.ctx), landTimeout)
}

// end tells the ledger how the call went and gives the place back, once. What
// cannot be told is let be: places are free after some seconds all the same, and
// Google will say again what it refuses.
func (f *trip) end() { f.ended.Do(f.land) }

func (f *trip) land() {
	if f.done != nil {
		defer f.done()
	}
	f.mu.Lock()
	if f.reader != nil {
		f.reader.end()
	}
	bytes, refusals := f.bytes, f.refusals
	f.mu.Unlock()
	ctx, cancel := f.landing()
	defer cancel()
	var crowded Refusal
	for _, r := range refusals {
		if r.Feature != "" && !slices.Contains(f.features, r.Feature) {
			// It was about another feature, and refused this call all the same: that is
			// like any refusal that names no moment of its own.
			_ = f.ledger.Answered(ctx, f.charge, Refusal{Scope: ScopeUser, Reason: r.Reason, Words: r.Words,
				Wait: defaultWaits[ScopeUser] / time.Duration(f.ledger.scale), Guess: true})
		}
		_ = f.ledger.Answered(ctx, f.charge, r)
		if r.Scope == ScopeConcurrency {
			crowded = r
		}
	}
	if f.place != nil {
		_ = f.place.land(ctx, bytes, crowded, max(1, f.parts))
	}
}

// got takes note of a piece of the answer's body.
func (f *trip) got(piece []byte) {
	if f.place != nil {
		f.place.active.Store(time.Now().UnixNano())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bytes += int64(len(piece))
	if f.reader != nil {
		f.reader.write(piece)
	}
}

// judge sorts an answer of Google's, that of a part of a batch too. f.mu must be
// held, unless the answer's body is nobody else's yet.
func (f *trip) judge(status int, header http.Header, body []byte) {
	r := f.ledger.Classify(status, header, body, time.Now())
	if r.Scope == ScopeNone {
		return
	}
	m := f.ledger.metrics
	m.refusals.WithLabelValues(f.charge.API, string(r.Scope)).Inc()
	if r.Absurd {
		m.absurdDeadlines.WithLabelValues(string(r.Scope)).Inc()
	}
	for i, old := range f.refusals {
		if old.Scope == r.Scope && old.Feature == r.Feature {
			if r.Wait > old.Wait {
				f.refusals[i] = r
			}
			return
		}
	}
	f.refusals = append(f.refusals, r)
}
