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

// list brings the listing to its end, page by page; it returns nil when it is
// complete. The mailbox's history id is pinned before the first page is asked
// for, so that whatever changes during the crawl can be read from there on; a
// run after another asks for the profile as well, for how much there is now.
// Calls is the context of calls to Google, see [slice.callContext].
func (s *slice) list(ctx, calls context.Context) *ending {
	first := s.job.Progress.Listed == 0 && s.job.Progress.Expected == 0
	if first || s.job.Checkpoint.HistoryID == 0 {
		if end := s.profile(ctx, calls); end != nil {
			return end
		}
		s.readLabels(ctx, calls)
	}
	for s.job.ListsOn() {
		if s.stopping() {
			return &ending{how: goesOn}
		}
		if end := s.listPage(ctx, calls); end != nil {
			return end
		}
	}
	s.lasting.tokens = nil
	return nil
}

func (s *slice) profile(ctx, calls context.Context) *ending {
	profile, end := s.askProfile(ctx, calls)
	if end != nil {
		return end
	}
	if err := s.opts.Store.SaveProfile(ctx, s.ref, profile); err != nil {
		return breaks(fmt.Errorf("save profile of %s: %w", s.job.Account, err))
	}
	s.job.Checkpoint.HistoryID = cmp.Or(s.job.Checkpoint.HistoryID, profile.HistoryID)
	return s.contact(ctx, profile)
}

func (s *slice) askProfile(ctx, calls context.Context) (profile jobs.Profile, end *ending) {
	err := s.call(calls, nil, func(ctx context.Context) (err error) {
		profile, err = s.box.Profile(ctx)
		return err
	})
	if err != nil {
		return profile, endingOfCall(ctx, calls, fmt.Errorf("profile of %s: %w", s.job.Account, err), time.Now())
	}
	return profile, nil
}

// readLabels records the mailbox's labels, whose names people see. Without them
// they see ids until the next sync, so a fault is none of the job's.
func (s *slice) readLabels(ctx, calls context.Context) {
	if s.labels == nil {
		err := s.call(calls, nil, func(ctx context.Context) (err error) {
			s.labels, err = s.box.Labels(ctx)
			return err
		})
		if err != nil {
			s.log.Debug("labels not read", zap.String("job", s.job.ID), zap.Error(err))
			return
		}
	}
	if err := s.opts.Store.SaveLabels(ctx, s.ref, s.labels); err != nil {
		s.log.Debug("labels not saved", zap.String("job", s.job.ID), zap.Error(err))
	}
}

// listPage lists the next page.
func (s *slice) listPage(ctx, calls context.Context) *ending {
	token := s.job.Checkpoint.PageToken
	var page jobs.Page
	err := s.call(calls, nil, func(ctx context.Context) (err error) {
		page, err = s.box.List(ctx, s.job.Search(), token)
		return err
	})
	switch call, isCall := errors.AsType[*jobs.CallError](err); {
	case isDeadCursor(err):
		return s.astray(ctx, calls, err)
	case isCall && call.Class == jobs.ClassSearch && !s.job.Filter.Whole():
		return &ending{how: ends, fin: jobs.Finish{State: jobs.Failed, Error: err.Error()}}
	case err != nil:
		return endingOfCall(ctx, calls, fmt.Errorf("list page %q of %s: %w", token, s.job.Account, err), time.Now())
	}
	before := s.job.Progress.Listed
	job, err := s.opts.Store.AddListed(ctx, s.ref, page)
	if err != nil {
		return breaks(fmt.Errorf("add a page of %s: %w", s.job.Account, err))
	}
	s.job.Checkpoint, s.job.Progress = job.Checkpoint, job.Progress
	switch {
	case s.job.Progress.Listed > before:
		s.progress = true
		s.lasting.barren, s.lasting.troubles = 0, 0
		s.lasting.frontier = page.IDs[len(page.IDs)-1]
	case !s.job.Checkpoint.Listed:
		s.lasting.barren++
	}
	return s.follow(ctx, calls)
}

// follow looks whether the next page's token leads on. Tokens that repeat would
// never come to an end; nor would ever new ones of pages without a new id, of
// which there are no more after a listing started over than there were before.
func (s *slice) follow(ctx, calls context.Context) *ending {
	next := s.job.Checkpoint.PageToken
	if s.job.Checkpoint.Listed {
		return nil
	}
	reason := ""
	switch most := 50 + s.job.Progress.Listed/100; {
	case s.lasting.tokens[next]:
		reason = "repeatedPageToken"
	case s.lasting.barren > most:
		reason = "endlessListing"
	default:
		if s.lasting.tokens == nil {
			s.lasting.tokens = map[string]bool{}
		}
		s.lasting.tokens[next] = true
		return nil
	}
	return s.astray(ctx, calls, &jobs.CallError{Class: jobs.ClassCursor, Reason: reason,
		Err: fmt.Errorf("the page tokens lead to no end, the last was %q", next)})
}

// astray deals with a page token that leads nowhere, which err tells of. First
// the listing starts over: ids are known by now, so that costs a few list calls.
// When that brings no new id, it goes on by date, behind what was listed. When
// that does not either, the listing is over if all is listed that the profile
// counts; else the job backs off, after what was listed is fetched.
func (s *slice) astray(ctx, calls context.Context, err error) *ending {
	err = fmt.Errorf("list page %q of %s: %w", s.job.Checkpoint.PageToken, s.job.Account, err)
	fromTop := s.job.Checkpoint.PageToken == ""
	s.lasting.tokens, s.lasting.barren = nil, 0
	s.lasting.troubles++
	var before time.Time
	switch p := s.job.Progress; {
	case s.job.Filter.Whole() && p.Expected > 0 && p.Listed >= p.Expected:
		s.log.Warn("page tokens lead to no end, but all is listed that the profile counts",
			zap.String("job", s.job.ID), zap.Int64("listed", p.Listed), zap.Error(err))
		job, err := s.opts.Store.AddListed(ctx, s.ref, jobs.Page{})
		if err != nil {
			return breaks(err)
		}
		s.job.Checkpoint = job.Checkpoint
		return nil
	case fromTop || s.lasting.troubles > 2:
		s.lasting.troubles = 0
		s.unlisted = breaks(err)
		if _, e := s.opts.Store.RestartListing(ctx, s.ref, before); e != nil {
			return breaks(e)
		}
		return s.unlisted
	case s.lasting.troubles == 2:
		var end *ending
		if before, end = s.behind(ctx, calls); end != nil {
			return end
		}
	}
	job, err := s.opts.Store.RestartListing(ctx, s.ref, before)
	if err != nil {
		return breaks(fmt.Errorf("restart the listing of %s: %w", s.job.Account, err))
	}
	s.job.Checkpoint = job.Checkpoint
	return nil
}

// behind returns the moment before which nothing was listed yet: the date of the
// last new id, since Gmail lists the newest first. It is zero when that is not
// known, or no earlier than before.
func (s *slice) behind(ctx, calls context.Context) (time.Time, *ending) {
	if s.lasting.frontier == "" {
		return time.Time{}, nil
	}
	var last jobs.Fetched
	err := s.call(calls, nil, func(ctx context.Context) (err error) {
		last, err = s.box.Metadata(ctx, s.lasting.frontier)
		return err
	})
	if call, ok := errors.AsType[*jobs.CallError](err); ok && call.Class == jobs.ClassGone {
		return time.Time{}, nil
	}
	if blames(err) {
		return time.Time{}, s.endingOfItem(ctx, calls, err)
	}
	if err != nil {
		return time.Time{}, endingOfCall(ctx, calls, fmt.Errorf("date of message %s of %s: %w", s.lasting.frontier, s.job.Account, err), time.Now())
	}
	before := last.InternalDate.Truncate(time.Second).Add(time.Second)
	if last.InternalDate.Before(time.Unix(0, 0)) || last.InternalDate.Year() > 9999 {
		return time.Time{}, nil // it tells nothing of where the others are
	}
	if old := s.job.Checkpoint.Before; !old.IsZero() && !before.Before(old) {
		return time.Time{}, nil
	}
	return before, nil
}

func isDeadCursor(err error) bool {
	call, ok := errors.AsType[*jobs.CallError](err)
	return ok && call.Class == jobs.ClassCursor
}
