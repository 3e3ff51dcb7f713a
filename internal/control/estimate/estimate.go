// Package estimate finds out what a backfill would take, and starts nothing: messages,
// calls, units by every price list, bytes and time, each with how sure it is. A few
// cheap calls ask Google.
package estimate

import (
	"context"
	"fmt"
	"time"

	"headroom/internal/google"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
	"headroom/quota"
)

// A Figure is a number, and how sure it is.
type Figure struct {
	Value int64  `json:"value"`
	Least int64  `json:"least"`
	Most  int64  `json:"most"`
	How   string `json:"how"` // how it was found, as text
}

func exactly(n int64, how string) Figure { return Figure{n, n, n, how} }

// Exact reports whether nothing but what changes meanwhile can make it another.
func (f Figure) Exact() bool { return f.Least == f.Most }

// less is f without what another figure counts.
func (f Figure) less(other Figure, how string) Figure {
	return Figure{max(0, f.Value-other.Value), max(0, f.Least-other.Most), max(0, f.Most-other.Least), how}
}

// add adds so many times another figure.
func (f *Figure) add(times int64, other Figure) {
	f.Value, f.Least, f.Most = f.Value+times*other.Value, f.Least+times*other.Least, f.Most+times*other.Most
}

// An Estimate is what a backfill takes, found without starting it.
type Estimate struct {
	Account string      `json:"account"`
	Project string      `json:"project"`
	Filter  jobs.Filter `json:"filter,omitzero"`

	Messages Figure  `json:"messages"` // that the listing names
	Known    Figure  `json:"known"`    // of them, stored already: they cost nothing but the listing
	Fetch    Figure  `json:"fetch"`    // of them, to be fetched
	Bytes    *Figure `json:"bytes"`    // of raw messages to fetch; null: nobody asked

	Plan   []Step   `json:"plan"` // the calls, in their order
	Why    string   `json:"why"`  // it is this plan, as text
	Prices []Priced `json:"prices"`

	Spent int64 `json:"spent"` // units that asking cost, by the project's own prices
}

// Own is what the backfill costs by the project's own price list.
func (e Estimate) Own() Priced {
	for _, p := range e.Prices {
		if p.Own {
			return p
		}
	}
	return Priced{}
}

// MostSampled bounds how many messages are asked for their sizes.
const MostSampled = 10

// An Estimator finds out what backfills would take. It charges its calls to the interactive
// lane, since a user waits for them. All fields but the last are required.
type Estimator struct {
	Store    *sqlite.Store
	Ledger   *quota.Ledger
	Google   *google.Google
	Projects map[string]quota.Project
	Scale    int

	MaxMessageBytes int64 // of larger messages no body is fetched; 0: of any size
}

// callWait bounds how long one call waits for quota.
const callWait = 20 * time.Second

// Estimate asks Google and the store what the backfill of an account with this filter
// would take. Where what is stored does not tell the sizes, it asks for those of up to
// sample messages; with a sample of 0 it estimates no bytes.
func (e Estimator) Estimate(ctx context.Context, email string, filter jobs.Filter, sample int) (Estimate, error) {
	if sample < 0 || sample > MostSampled {
		return Estimate{}, fmt.Errorf("a sample of %d messages is not from 0 to %d", sample, MostSampled)
	}
	if err := filter.Validate(); err != nil {
		return Estimate{}, err
	}
	account, err := e.Store.Account(ctx, email)
	if err != nil {
		return Estimate{}, err
	}
	box, err := e.Google.Mailbox(ctx, account, quota.Interactive, callWait)
	if err != nil {
		return Estimate{}, err
	}
	filter = filter.Normal()
	s := &survey{Estimator: e, box: box, account: account, filter: filter}
	if err := s.count(ctx); err != nil {
		return Estimate{}, fmt.Errorf("estimate the backfill of %s: %w", account.Email, err)
	}
	result := Estimate{Account: account.Email, Project: account.Project, Filter: filter,
		Messages: s.messages, Known: s.known, Fetch: s.fetch()}
	if err := s.parts(ctx, sample); err != nil {
		return Estimate{}, fmt.Errorf("estimate the backfill of %s: %w", account.Email, err)
	}
	if sample > 0 {
		bytes, err := s.bytes(ctx, sample)
		if err != nil {
			return Estimate{}, fmt.Errorf("estimate the bytes of %s: %w", account.Email, err)
		}
		result.Bytes = &bytes
	}
	result.Prices, err = s.prices(result)
	own := result.Own().list
	result.Plan, result.Why, result.Spent = s.plan(own), s.why(own), s.spent
	return result, err
}
