package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

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
		var profile jobs.Profile
		err := s.call(calls, nil, func(ctx context.Context) (err error) {
			profile, err = s.box.Profile(ctx)
			return err
		})
		if err != nil {
			return endingOfCall(ctx, calls, fmt.Errorf("profile of %s: %w", s.job.Account, err), time.Now())
		}
		if err := s.opts.Store.SaveProfile(ctx, s.ref, profile); err != nil {
			return breaks(fmt.Errorf("save profile of %s: %w", s.job.Account, err))
		}
		s.job.Checkpoint.HistoryID = cmp.Or(s.job.Checkpoint.HistoryID, profile.HistoryID)
	}
	restarted := false
	for !s.job.Checkpoint.Listed {
		if s.stopping() {
			return &ending{how: goesOn}
		}
		token := s.job.Checkpoint.PageToken
		page, err := s.nextPage(calls, token)
		if isDeadCursor(err) && token != "" && !restarted {
			// Ids are known by now, so starting over costs a few list calls.
			restarted = true
			if err := s.opts.Store.RestartListing(ctx, s.ref); err != nil {
				return breaks(fmt.Errorf("restart the listing of %s: %w", s.job.Account, err))
			}
			s.job.Checkpoint.PageToken = ""
			continue
		}
		if err != nil {
			return endingOfCall(ctx, calls, err, time.Now())
		}
		job, err := s.opts.Store.AddListed(ctx, s.ref, page)
		if err != nil {
			return breaks(fmt.Errorf("add a page of %s: %w", s.job.Account, err))
		}
		s.job.Checkpoint, s.job.Progress, s.progress = job.Checkpoint, job.Progress, true
	}
	return nil
}

// nextPage asks for the page of token. A page that names itself as the next one
// would never end, and is as good as a dead cursor.
func (s *slice) nextPage(ctx context.Context, token string) (jobs.Page, error) {
	var page jobs.Page
	err := s.call(ctx, nil, func(ctx context.Context) (err error) {
		page, err = s.box.List(ctx, s.job.Filter.Search(), token)
		return err
	})
	if err == nil && token != "" && page.Next == token {
		err = &jobs.CallError{Class: jobs.ClassCursor, Reason: "repeatedPageToken", Err: errors.New("the page names itself as the next")}
	}
	if err != nil {
		return jobs.Page{}, fmt.Errorf("list page %q of %s: %w", token, s.job.Account, err)
	}
	return page, nil
}

func isDeadCursor(err error) bool {
	call, ok := errors.AsType[*jobs.CallError](err)
	return ok && call.Class == jobs.ClassCursor
}
