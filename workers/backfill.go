package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"headroom/jobs"
)

// A backfillRun lists a mailbox page by page, and fetches what it listed.
type backfillRun struct{ *mailRun }

func newBackfillRun(s *slice) *backfillRun {
	r := &backfillRun{&mailRun{slice: s}}
	r.lister = r
	return r
}

func (b *backfillRun) run(ctx context.Context) result {
	if r := b.open(ctx); r.stops() {
		return r
	}
	if b.job.ListsOn() {
		if r := b.list(ctx); r.stops() && !b.unlisted.stops() {
			return r
		}
	}
	return b.fetch(ctx)
}

// list lists page by page. The mailbox's history id is pinned before the first page is
// asked for, so that whatever changes during the crawl can be read from there on; a
// backfill that runs again asks for the profile as well, for how much there is now.
func (b *backfillRun) list(ctx context.Context) result {
	first := b.job.Progress.Listed == 0 && b.job.Progress.Expected == 0
	if first || b.job.Checkpoint.HistoryID == 0 {
		if r := b.saveProfile(ctx); r.stops() {
			return r
		}
		b.saveLabels(ctx)
	}
	for b.job.ListsOn() {
		if b.stopping() {
			return result{reason: timeUp}
		}
		if r := b.listPage(ctx); r.stops() {
			return r
		}
	}
	b.memo.listing.tokens = nil
	return result{}
}

// relist implements [lister].
func (b *backfillRun) relist(ctx context.Context) (more bool, r result) { return true, b.list(ctx) }

// between implements [lister]: a backfill has nothing else to do.
func (b *backfillRun) between(context.Context) (worked bool, r result) { return false, result{} }

func (b *backfillRun) saveProfile(ctx context.Context) result {
	profile, r := b.profile(ctx)
	if r.stops() {
		return r
	}
	if err := b.opts.Store.SaveProfile(ctx, b.ref, profile); err != nil {
		return failed(fmt.Errorf("save profile of %s: %w", b.job.Account, err))
	}
	b.job.Checkpoint.HistoryID = cmp.Or(b.job.Checkpoint.HistoryID, profile.HistoryID)
	return b.checkAddress(ctx, profile)
}

// listPage lists the next page.
func (b *backfillRun) listPage(ctx context.Context) result {
	token := b.job.Checkpoint.PageToken
	page, err := get(b.slice, nil, func(ctx context.Context) (jobs.Page, error) { return b.box.List(ctx, b.job.Search(), token) })
	switch class := classOf(err); {
	case class == jobs.ClassCursor:
		return b.recoverListing(ctx, err)
	case class == jobs.ClassSearch && !b.job.Filter.Whole():
		return endsAs(jobs.Failed, err.Error())
	case err != nil:
		return b.resultOfCall(ctx, fmt.Errorf("list page %q of %s: %w", token, b.job.Account, err))
	}
	before := b.job.Progress.Listed
	job, err := b.opts.Store.AddListed(ctx, b.ref, page)
	if err != nil {
		return failed(fmt.Errorf("add a page of %s: %w", b.job.Account, err))
	}
	b.job.Checkpoint, b.job.Progress = job.Checkpoint, job.Progress
	memo := &b.memo.listing
	switch {
	case b.job.Progress.Listed > before:
		b.progress = true
		memo.emptyPages, memo.restarts = 0, 0
		memo.oldest = page.IDs[len(page.IDs)-1]
	case !b.job.Checkpoint.Listed:
		memo.emptyPages++
	}
	return b.checkNextToken(ctx)
}

// checkNextToken stops to follow page tokens that lead to no end: tokens that repeat,
// and ever new tokens of pages without a new id. A listing that starts over has no more
// such pages than it had before.
func (b *backfillRun) checkNextToken(ctx context.Context) result {
	next, memo := b.job.Checkpoint.PageToken, &b.memo.listing
	if b.job.Checkpoint.Listed {
		return result{}
	}
	reason := ""
	switch most := 50 + b.job.Progress.Listed/100; {
	case memo.tokens[next]:
		reason = "repeatedPageToken"
	case memo.emptyPages > most:
		reason = "endlessListing"
	default:
		if memo.tokens == nil {
			memo.tokens = map[string]bool{}
		}
		memo.tokens[next] = true
		return result{}
	}
	return b.recoverListing(ctx, &jobs.CallError{Class: jobs.ClassCursor, Reason: reason,
		Err: fmt.Errorf("the page tokens lead to no end, the last was %q", next)})
}

// recoverListing deals with a page token that leads nowhere; err is what was wrong with
// it. First the listing starts over: ids are known by now, so that costs a few list
// calls. If that brings no new id, it continues by date, after what was listed. If that
// does not either, the listing is over if all is listed that the profile counts;
// otherwise the job backs off, after what was listed is fetched.
func (b *backfillRun) recoverListing(ctx context.Context, err error) result {
	err = fmt.Errorf("list page %q of %s: %w", b.job.Checkpoint.PageToken, b.job.Account, err)
	memo := &b.memo.listing
	memo.tokens, memo.emptyPages = nil, 0
	memo.restarts++
	var before time.Time
	switch p := b.job.Progress; {
	case b.job.Filter.Whole() && p.Expected > 0 && p.Listed >= p.Expected:
		b.log.Warn("page tokens lead to no end, but all is listed that the profile counts",
			b.logJob(zap.Int64("listed", p.Listed), zap.Error(err))...)
		job, err := b.opts.Store.AddListed(ctx, b.ref, jobs.Page{})
		if err != nil {
			return failed(err)
		}
		b.job.Checkpoint = job.Checkpoint
		return result{}
	case b.job.Checkpoint.PageToken == "" || memo.restarts > 2:
		memo.restarts = 0
		if _, e := b.opts.Store.RestartListing(ctx, b.ref, before); e != nil {
			return failed(e)
		}
		b.unlisted = failed(err)
		return b.unlisted
	case memo.restarts == 2:
		var r result
		if before, r = b.oldestDate(ctx); r.stops() {
			return r
		}
	}
	job, err := b.opts.Store.RestartListing(ctx, b.ref, before)
	if err != nil {
		return failed(fmt.Errorf("restart the listing of %s: %w", b.job.Account, err))
	}
	b.job.Checkpoint = job.Checkpoint
	return result{}
}

// oldestDate returns the moment before which nothing was listed yet: the date of the
// last new id, since Gmail lists the newest first. It is zero if that is not known, or
// no earlier than the date by which the listing is bounded already.
func (b *backfillRun) oldestDate(ctx context.Context) (time.Time, result) {
	id := b.memo.listing.oldest
	if id == "" {
		return time.Time{}, result{}
	}
	last, err := get(b.slice, nil, func(ctx context.Context) (jobs.Fetched, error) { return b.box.Metadata(ctx, id) })
	if classOf(err) == jobs.ClassGone {
		return time.Time{}, result{}
	}
	if blames(err) {
		return time.Time{}, b.access.resultOf(ctx, b.slice, err)
	}
	if err != nil {
		return time.Time{}, b.resultOfCall(ctx, fmt.Errorf("date of message %s of %s: %w", id, b.job.Account, err))
	}
	before := last.InternalDate.Truncate(time.Second).Add(time.Second)
	if last.InternalDate.Before(time.Unix(0, 0)) || last.InternalDate.Year() > 9999 {
		return time.Time{}, result{} // it does not say where the others are
	}
	if old := b.job.Checkpoint.Before; !old.IsZero() && !before.Before(old) {
		return time.Time{}, result{}
	}
	return before, result{}
}

// classOf is the class of a call's error; "" if the error is not Google's.
func classOf(err error) jobs.Class {
	if call, ok := errors.AsType[*jobs.CallError](err); ok {
		return call.Class
	}
	return ""
}
