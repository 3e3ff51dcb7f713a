package workers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"headroom/jobs"
)

// samples is how many pending items are tried where nothing is stored that could
// tell.
const samples = 4

// A breaker is the circuit breaker of a job's fetches, which all slices share that one
// process runs. A streak of faults, with no success between them, opens it: then no more
// items are fetched until a probe tells whether Google is out. If the probe works, or
// the mailbox answers otherwise for so long that it is no outage, the faults are the
// items' own and count; else they count for nothing, and the job backs off.
type breaker struct {
	streak int       // faults of items since something last worked
	worked time.Time // when something last did
	proven time.Time // when a probe last worked that was made after faults
	goodID string    // of a message that was fetched lately; "": ask the store
}

// probeWorked closes the breaker.
func (b *breaker) probeWorked(now time.Time) { b.streak, b.worked, b.proven = 0, now, now }

// evidence is what is known about the faults of late, if these are whose results
// are to count.
func (m *mailRun) evidence(b breaker, suspects []suspect) jobs.Evidence {
	now := m.now()
	since := func(t time.Time) time.Duration {
		if t.IsZero() {
			return -1
		}
		return now.Sub(t)
	}
	e := jobs.Evidence{Streak: b.streak, Proven: since(b.proven), Worked: since(b.worked)}
	if !m.job.FailingSince.IsZero() && !m.progress {
		e.Unproven = now.Sub(m.job.FailingSince)
	}
	for _, one := range suspects {
		e.Final = e.Final || one.result.Outcome == jobs.ItemFailed
	}
	return e
}

// decide finds out whether a row of faults was an outage, in which case the job backs
// off and the items are as if never tried, or the items' own fault, in which case
// their attempts count and it returns the zero result. They are the items' own if any
// other fetch works. In an outage the next slice begins with the same items: so where
// each of them works after some attempts, the first one soon proves it for all.
func (m *mailRun) decide(ctx context.Context, suspects []suspect) result {
	proven, r := m.probe(ctx, suspects)
	if r.stops() {
		return r
	}
	switch err := blamed(suspects); {
	case proven:
	case err != nil && len(suspects) >= jobs.FaultStreak: // one after the other is refused: it is the account
		return resultOf(err, m.now())
	case err != nil: // they are all that is left, and the account answers other calls
	case !m.evidence(m.memo.breaker, suspects).Blamed():
		return m.outage(causeOf(suspects))
	}
	results := make([]jobs.Result, len(suspects))
	for i, suspect := range suspects {
		results[i] = suspect.result
	}
	m.memo.breaker.streak = 0
	done, err := m.commit(ctx, results)
	if err != nil {
		return failed(err)
	}
	m.note(done)
	return result{}
}

// causeOf is the last fault of the suspects that an outage may explain.
func causeOf(suspects []suspect) error {
	for _, s := range slices.Backward(suspects) {
		if !blames(s.err) {
			return s.err
		}
	}
	return suspects[len(suspects)-1].err
}

// probe asks Google for something other than the suspects: for a message known to
// be good, or else, of a mailbox of which nothing is stored yet, for its profile,
// and then for a few of the pending items. Proven says that fetches work; the result
// is set when Google is out, or for any other reason to stop.
func (m *mailRun) probe(ctx context.Context, suspects []suspect) (proven bool, r result) {
	defer m.calls.extend()() // the fetches may have taken all of the slice's time
	if known, r := m.probeKnown(ctx, suspects); known || r.stops() {
		return !r.stops(), r
	}
	if blamed(suspects) == nil { // else that was found out before
		if err := m.call(nil, m.access.ask); err != nil {
			return false, m.resultOfCall(ctx, err)
		}
	}
	return m.probePending(ctx, suspects)
}

// probeKnown asks for a message known to be good: the last that worked in this
// process, or else one that is stored. An answer proves that Google is not out.
// Known is false when there is none; the result is set when Google is out, or for any
// other reason to stop.
func (m *mailRun) probeKnown(ctx context.Context, suspects []suspect) (known bool, r result) {
	b := &m.memo.breaker
	id := b.goodID
	if id == "" {
		var err error
		if id, err = m.opts.Store.StoredID(ctx, m.job.Account); errors.Is(err, jobs.ErrNotFound) {
			return false, result{}
		} else if err != nil {
			return false, failed(err)
		}
	}
	// If this one has gone bad itself, the next probe takes another.
	b.goodID = ""
	err := m.call(nil, func(ctx context.Context) error {
		_, err := m.box.Metadata(ctx, id)
		return err
	})
	switch class := classOf(err); {
	case err == nil:
		b.goodID = id
	case ctx.Err() != nil, m.calls.interrupted():
		return true, m.resultOfCall(ctx, err)
	case class == jobs.ClassGone, class == jobs.ClassItem: // an answer, too
	case blames(err) && blamed(suspects) != nil: // items and items alike: it is the account
		return true, resultOf(err, m.now())
	default:
		if r := m.access.resultOf(ctx, m.slice, err); r.stops() {
			return true, r
		}
		return true, m.outage(err)
	}
	b.probeWorked(m.now())
	return true, result{}
}

// probePending tries a few items beyond the suspects. What works is kept; what
// does not is as if never tried.
func (m *mailRun) probePending(ctx context.Context, suspects []suspect) (proven bool, r result) {
	items, err := m.sample(ctx, suspects)
	if err != nil {
		return false, failed(err)
	}
	for _, item := range items {
		out, r := m.fetchMessage(ctx, nil, item)
		switch {
		case r.stops():
			return false, r
		case out == nil:
			return false, result{reason: timeUp}
		case out.fault != nil:
			continue
		}
		done, err := m.commit(ctx, []jobs.Result{out.result})
		if err != nil {
			return false, failed(err)
		}
		m.note(done)
		if out.result.Outcome == jobs.ItemStored {
			m.memo.breaker.goodID = item.ID
		}
		m.memo.breaker.probeWorked(m.now())
		return true, result{}
	}
	return false, result{}
}

// sample returns pending items that were never tried, from all parts of the listing
// after the suspects: bad messages tend to stand side by side.
func (m *mailRun) sample(ctx context.Context, suspects []suspect) ([]jobs.Item, error) {
	var after int64
	for _, suspect := range suspects {
		after = max(after, suspect.item.Seq)
	}
	rest := m.job.Progress.Listed - after
	var items []jobs.Item
	for i := range int64(samples) {
		from, to := after+rest*i/samples, after+rest*(i+1)/samples
		if from >= to {
			continue
		}
		next, err := m.opts.Store.NextItems(ctx, m.ref, from+rand.N(to-from), 1)
		if err != nil {
			return nil, fmt.Errorf("sample the items of job %s: %w", m.job.ID, err)
		}
		// An item that failed before proves nothing. And pending items may be so
		// far apart that two parts find the same one.
		if len(next) > 0 && next[0].Attempts == 0 && (len(items) == 0 || next[0].Seq > items[len(items)-1].Seq) {
			items = append(items, next[0])
		}
	}
	return items, nil
}

// outage is the result of a slice in which no fetch works.
func (m *mailRun) outage(err error) result {
	return failed(fmt.Errorf("fetches from %s fail: %w", m.job.Account, err))
}
