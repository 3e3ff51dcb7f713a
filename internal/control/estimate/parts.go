package estimate

import (
	"context"
	"fmt"

	"headroom/jobs"
	"headroom/workers"
)

// byThread reports whether the count of calls hangs on how the messages are spread
// over threads, which takes a listing.
func (s *survey) byThread() bool {
	for _, list := range s.Projects[s.account.Project].Lists {
		if list.API != "gmail" {
			continue
		}
		from := int64(workers.ThreadsFrom(list, s.filter.Format))
		return from > 0 && s.all-s.threads >= from-1 // else no thread has so many
	}
	return false
}

// grouped counts the threads that are fetched as a whole because they hold so many
// messages to fetch, if any are, and the messages that are not among those.
func (s *survey) grouped(from int) (threads, singles Figure) {
	fetch := s.fetch()
	singles = fetch
	singles.How = "one a message"
	if from == 0 || s.thread == nil {
		return Figure{}, singles
	}
	count := map[string]int64{}
	var unseen, whole, within int64
	for _, id := range s.ids {
		if !s.stored[id] {
			unseen++
			count[s.thread[id]]++
		}
	}
	for _, n := range count {
		if n >= int64(from) {
			whole++
			within += n
		}
	}
	how := fmt.Sprintf("of the listed threads, those with %d messages to fetch or more", from)
	if s.messages.Exact() || unseen == 0 {
		return exactly(whole, how), exactly(unseen-within, "of the listed messages, those in other threads")
	}
	part := func(n, of int64) int64 { return int64(float64(n) * float64(of) / float64(unseen)) }
	rest := unseen - within
	return Figure{part(fetch.Value, whole), whole, part(fetch.Most, whole), how + ", and the rest like them"},
		Figure{part(fetch.Value, rest), rest, part(fetch.Most, rest), "likewise"}
}

// parts finds out how many attachments come by themselves, and how many messages are
// too large.
func (s *survey) parts(ctx context.Context, sample int) error {
	if bound := s.MaxMessageBytes; bound > 0 && s.fetch().Most > 0 {
		ids, err := s.matching(ctx, fmt.Sprintf("larger:%d", bound))
		if err != nil {
			return err
		}
		s.large = exactly(int64(len(ids)), "as Gmail's search finds them")
	}
	if s.filter.Format != jobs.FormatFull || s.fetch().Most == 0 {
		return nil
	}
	term := "has:attachment"
	if s.MaxMessageBytes > 0 {
		term += fmt.Sprintf(" smaller:%d", s.MaxMessageBytes)
	}
	ids, err := s.matching(ctx, term)
	if err != nil {
		return err
	}
	n := int64(len(ids))
	s.attached = Figure{n, n, n, "at least one of each message that Gmail's search says has any"}
	if sample == 0 || n == 0 {
		return nil
	}
	return s.sampleParts(ctx, ids, min(sample, len(ids)))
}

// sampleParts asks some messages for how many attachments they have.
func (s *survey) sampleParts(ctx context.Context, ids []string, most int) error {
	var asked, found, least, largest int64
	err := s.ask(ids, most, "full", func(id string) error {
		f, err := s.box.Full(ctx, id)
		if err == nil {
			n := int64(len(f.Attachments))
			if asked == 0 {
				least = n
			}
			asked, found, least, largest = asked+1, found+n, min(least, n), max(largest, n)
		}
		return err
	})
	if err == nil && asked > 0 {
		n := int64(len(ids))
		s.attached = Figure{(n*found + asked/2) / asked, n * least, n * largest,
			fmt.Sprintf("of %d messages that Gmail's search says have any, by %d of them", n, asked)}
	}
	return err
}

// matching lists the messages to fetch that a term of Gmail's search finds.
func (s *survey) matching(ctx context.Context, term string) ([]string, error) {
	search := s.filter.Search()
	if search.Query != "" {
		term = search.Query + " " + term
	}
	search.Query = term
	listed := map[string]bool{}
	for _, id := range s.ids {
		listed[id] = true
	}
	var ids []string
	seen := map[string]bool{}
	_, err := s.pages(ctx, search, func(answer jobs.Page) bool {
		for _, id := range answer.IDs {
			if !seen[id] && (s.ids == nil || listed[id]) {
				seen[id] = true
				ids = append(ids, id)
			}
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	known, err := s.Store.KnownAmong(ctx, s.account.Email, s.filter.Format, ids)
	return unstored(ids, known), err
}
