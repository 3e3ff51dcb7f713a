package quotaview

import (
	"context"
	"slices"
	"time"

	"headroom/quota"
)

// QuotaStory is what was decided about an account lately, and what holds now.
type QuotaStory struct {
	At      time.Time    `json:"at"` // on the clock of Redis
	Account string       `json:"account"`
	Project string       `json:"project"`
	APIs    []APIQuota   `json:"apis"`
	Notes   []quota.Note `json:"decisions"` // the newest last
}

// Story reads the last decisions about the account.
func (r *Reader) Story(ctx context.Context, last int) (QuotaStory, error) {
	s := QuotaStory{Account: r.Account, Project: r.Project, Notes: []quota.Note{}}
	for _, list := range r.Lists {
		a, at, err := r.api(ctx, list)
		if err != nil {
			return QuotaStory{}, err
		}
		s.At, s.APIs = at, append(s.APIs, a)
		notes, err := r.Ledger.Notes(ctx, s.Project, s.Account, list.API, at)
		if err != nil {
			return QuotaStory{}, err
		}
		s.Notes = append(s.Notes, notes...)
	}
	slices.SortStableFunc(s.Notes, func(a, b quota.Note) int { return a.Last.Compare(b.Last) })
	s.Notes = s.Notes[max(0, len(s.Notes)-last):]
	return s, nil
}
