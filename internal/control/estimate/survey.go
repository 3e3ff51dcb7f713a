package estimate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"headroom/internal/google"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
	"headroom/quota"
)

const (
	// pageIDs is how many ids a page of a listing holds.
	pageIDs = 500
	// mostPages bounds the pages that are listed to count what a filter lets
	// through: a hundred thousand messages, for 1,000 units.
	mostPages = 200
	// sureEnough is how far apart two bounds of a count may be, as a share of it.
	sureEnough = 0.05
	// enoughStored is how many stored messages tell how large the others are.
	enoughStored = 200
)

// A survey finds out about one mailbox what an estimate needs.
type survey struct {
	Estimator
	box     *google.Mailbox
	account jobs.Account
	filter  jobs.Filter
	spent   int64 // units

	messages, known Figure
	all, threads    int64 // messages and threads of the whole mailbox
	hidden          int64 // messages in spam and trash, at most
	ids             []string
	thread          map[string]string // of ids
	stored          map[string]bool   // of ids

	attached Figure // attachments to fetch, for format full
	large    Figure // messages to fetch whose body is too large to be fetched
}

// paid counts what a call costs.
func (s *survey) paid(method, format string) {
	units, err := s.Ledger.Cost(s.account.Project, quota.Method{API: "gmail", ID: "gmail.users." + method, Format: format})
	if err == nil {
		s.spent += units
	}
}

func (s *survey) fetch() Figure {
	return s.messages.less(s.known, "messages less those stored already")
}

// count finds how many messages the filter lets through, by the cheapest means that
// is sure enough: the counts of the profile and the labels, or else a listing of ids.
func (s *survey) count(ctx context.Context) error {
	all, threads, err := s.box.Totals(ctx)
	if err != nil {
		return err
	}
	s.paid("getProfile", "")
	s.all, s.threads = all, threads
	var spam, trash int64
	if !s.filter.SpamTrash {
		if spam, err = s.label(ctx, "SPAM"); err != nil {
			return err
		}
		if trash, err = s.label(ctx, "TRASH"); err != nil {
			return err
		}
		s.hidden = min(all, spam+trash)
	}
	f := s.filter
	if s.byThread() {
		return s.list(ctx)
	}
	rest := f
	rest.First, rest.Labels = 0, nil
	switch {
	case !rest.Whole() || len(f.Labels) > 1:
		return s.list(ctx)
	case len(f.Labels) == 1:
		return s.countLabel(ctx)
	}
	// What lies in spam and in trash was counted twice.
	s.messages = Figure{Value: all - s.hidden, Least: all - s.hidden, Most: all - max(spam, trash), How: "the profile's count"}
	if !f.SpamTrash {
		s.messages.How += " less those of spam and trash"
	}
	return s.countKnown(ctx, "")
}

func (s *survey) label(ctx context.Context, label string) (int64, error) {
	s.paid("labels.get", "")
	return s.box.LabelTotal(ctx, label)
}

// countLabel counts by one label. What has it may lie in spam or trash.
func (s *survey) countLabel(ctx context.Context) error {
	label := s.filter.Labels[0]
	n, err := s.label(ctx, label)
	if err != nil {
		return err
	}
	s.messages = Figure{Value: n, Least: max(0, n-s.hidden), Most: n, How: "the count of label " + label}
	if label == "SPAM" || label == "TRASH" {
		s.messages.Least = n
	}
	if float64(s.messages.Most-s.messages.Least) > sureEnough*float64(n) {
		return s.list(ctx)
	}
	return s.countKnown(ctx, label)
}

// countKnown counts what is stored of what was counted. Which of a mailbox are its
// newest messages takes a listing.
func (s *survey) countKnown(ctx context.Context, label string) error {
	bodies, err := s.Store.Bodies(ctx, s.account.Email, s.filter.Format, label, s.filter.SpamTrash || label == "SPAM" || label == "TRASH")
	if err != nil {
		return err
	}
	if first := s.filter.First; first > 0 && first < s.messages.Most {
		if bodies.Count > 0 {
			return s.list(ctx)
		}
		s.messages = Figure{min(first, s.messages.Value), min(first, s.messages.Least), first, "the newest of " + s.messages.How}
	}
	s.known = exactly(min(bodies.Count, s.messages.Most), "counted in the store")
	return nil
}

// list counts by listing ids, up to a bound. It ignores the size that a listing
// estimates, which Google gives as 201 whatever it is.
func (s *survey) list(ctx context.Context) error {
	seen, first := map[string]bool{}, s.filter.First
	s.thread = map[string]string{}
	whole, err := s.pages(ctx, s.filter.Search(), func(answer jobs.Page) (more bool) {
		for i, id := range answer.IDs {
			s.thread[id] = answer.Threads[i]
			if !seen[id] && (first == 0 || int64(len(s.ids)) < first) {
				seen[id] = true
				s.ids = append(s.ids, id)
			}
		}
		return first == 0 || int64(len(s.ids)) < first
	})
	if err != nil {
		return err
	}
	n := int64(len(s.ids))
	s.messages = exactly(n, "listed")
	if !whole {
		s.messages = Figure{max(n, s.all-s.hidden), n, s.all, fmt.Sprintf("more than the %d that were listed, at most the whole mailbox", n)}
	}
	if !s.filter.After.IsZero() || !s.filter.Before.IsZero() || s.filter.MaxSize > 0 {
		s.messages.How += ", with those just outside of dates or size, which are fetched to see that they are"
	}
	if s.stored, err = s.Store.KnownAmong(ctx, s.account.Email, s.filter.Format, s.ids); err != nil {
		return err
	}
	s.known = exactly(int64(len(s.stored)), "of those listed")
	if !s.messages.Exact() {
		bodies, err := s.Store.Bodies(ctx, s.account.Email, s.filter.Format, "", true)
		if err != nil {
			return err
		}
		s.known.Most = min(bodies.Count, s.messages.Most)
	}
	return nil
}

// bytes estimates how large the messages to fetch are together: by the sizes of
// those stored already, or else of a few that Google is asked for.
func (s *survey) bytes(ctx context.Context, sample int) (Figure, error) {
	fetch := s.fetch()
	if fetch.Most == 0 {
		return exactly(0, "nothing is to be fetched"), nil
	}
	bodies, err := s.Store.Bodies(ctx, s.account.Email, s.filter.Format, "", true)
	if err != nil {
		return Figure{}, err
	}
	if bodies.Count >= enoughStored {
		return sized(fetch, bodies, fmt.Sprintf("by the mean size of the %d stored", bodies.Count)), nil
	}
	sampled, err := s.sample(ctx, sample)
	if err != nil {
		return Figure{}, err
	}
	if sampled.Count == 0 {
		return Figure{Most: math.MaxInt64, How: "unknown: no message could be asked for its size"}, nil
	}
	return sized(fetch, sampled, fmt.Sprintf("roughly, by the sizes of %d of them", sampled.Count)), nil
}

// sized is the size of some messages by that of others: with two standard errors of
// their mean to either side.
func sized(fetch Figure, others sqlite.Bodies, how string) Figure {
	n := float64(others.Count)
	mean := float64(others.Bytes) / n
	spread := math.Sqrt(max(0, others.Squares/n-mean*mean) / max(1, n-1))
	least := max(0, mean-2*spread)
	return Figure{
		Value: int64(float64(fetch.Value) * mean),
		Least: int64(float64(fetch.Least) * least), Most: int64(float64(fetch.Most) * (mean + 2*spread)), How: how,
	}
}

// sample asks for the sizes of some messages to fetch, spread evenly over those that
// are listed; over the newest page where nothing had to be listed.
func (s *survey) sample(ctx context.Context, most int) (sqlite.Bodies, error) {
	if s.ids == nil {
		page, err := s.box.List(ctx, s.filter.Search(), "")
		if err != nil {
			return sqlite.Bodies{}, err
		}
		s.paid("messages.list", "")
		if s.ids = page.IDs; s.filter.First > 0 {
			s.ids = s.ids[:min(int64(len(s.ids)), s.filter.First)]
		}
		if s.stored, err = s.Store.KnownAmong(ctx, s.account.Email, s.filter.Format, s.ids); err != nil {
			return sqlite.Bodies{}, err
		}
	}
	var b sqlite.Bodies
	err := s.ask(unstored(s.ids, s.stored), most, "metadata", func(id string) error {
		f, err := s.box.Metadata(ctx, id)
		if err == nil {
			b.Count++
			b.Bytes += f.SizeEstimate
			b.Squares += float64(f.SizeEstimate) * float64(f.SizeEstimate)
		}
		return err
	})
	return b, err
}

// pages lists ids until there are no more, use wants no more, or a bound is reached.
// Whole reports that the bound was not. Some mailboxes answer with the same page again.
func (s *survey) pages(ctx context.Context, search jobs.Search, use func(jobs.Page) (more bool)) (whole bool, err error) {
	token := ""
	for range mostPages {
		answer, err := s.box.List(ctx, search, token)
		if err != nil {
			return false, err
		}
		s.paid("messages.list", "")
		if !use(answer) || answer.Next == "" {
			return true, nil
		}
		if answer.Next == token {
			return false, nil
		}
		token = answer.Next
	}
	return false, nil
}

// ask asks for up to most messages, spread evenly over ids. Those that are gone count
// for nothing.
func (s *survey) ask(ids []string, most int, format string, get func(id string) error) error {
	most = min(most, len(ids))
	for i := range most {
		err := get(ids[(2*i+1)*len(ids)/(2*most)])
		s.paid("messages.get", format)
		if call, ok := errors.AsType[*jobs.CallError](err); ok && call.Class == jobs.ClassGone {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unstored are the ids that are not stored.
func unstored(ids []string, stored map[string]bool) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return stored[id] })
}

// pages is how many pages a listing of n ids has.
func pages(n int64) int64 { return max(1, (n+pageIDs-1)/pageIDs) }
