package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/google"
	"headroom/internal/redisconn"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
	"headroom/quota"
)

// A Figure is a number, and how sure it is.
type Figure struct {
	Value int64  `json:"value"`
	Least int64  `json:"least"`
	Most  int64  `json:"most"`
	How   string `json:"how"` // how it was found, for people
}

func exactly(n int64, how string) Figure { return Figure{n, n, n, how} }

// Exact reports whether nothing but what changes meanwhile can make it another.
func (f Figure) Exact() bool { return f.Least == f.Most }

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
	Why    string   `json:"why"`  // it is this plan, for people
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

// EstimateOptions say how much asking may cost.
type EstimateOptions struct {
	// Sample is how many messages at most are asked for their sizes where what is
	// stored does not tell enough; up to [MostSampled]. 0: no bytes are estimated.
	Sample int
}

// MostSampled bounds [EstimateOptions.Sample].
const MostSampled = 10

// An Estimator says what backfills would take. It charges its few calls to the
// interactive lane, since somebody waits for them.
type Estimator struct {
	Store    *sqlite.Store
	Ledger   *quota.Ledger
	Google   *google.Google
	Projects map[string]quota.Project
	Scale    int

	MaxMessageBytes int64 // of larger messages no body is brought; 0: of any size
}

// estimateWait is how long one call of an estimate waits for quota, at most.
const estimateWait = 20 * time.Second

// Estimate asks Google, with a few cheap calls, and the store what the backfill of
// an account with this filter would take. Nothing is started.
func (e Estimator) Estimate(ctx context.Context, email string, filter jobs.Filter, o EstimateOptions) (Estimate, error) {
	if o.Sample < 0 || o.Sample > MostSampled {
		return Estimate{}, fmt.Errorf("a sample of %d messages is not from 0 to %d", o.Sample, MostSampled)
	}
	if err := filter.Validate(); err != nil {
		return Estimate{}, err
	}
	account, err := e.Store.Account(ctx, email)
	if err != nil {
		return Estimate{}, err
	}
	box, err := e.Google.Mailbox(ctx, account, quota.Interactive, estimateWait)
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
	if err := s.parts(ctx, o.Sample); err != nil {
		return Estimate{}, fmt.Errorf("estimate the backfill of %s: %w", account.Email, err)
	}
	if o.Sample > 0 {
		bytes, err := s.bytes(ctx, o.Sample)
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

// EstimateBackfill is [Estimator.Estimate] for commands: it opens what the settings
// name.
func EstimateBackfill(ctx context.Context, cfg config.Config, email string, filter jobs.Filter, o EstimateOptions, log *zap.Logger) (result Estimate, err error) {
	projects, err := Projects(cfg)
	if err != nil {
		return Estimate{}, err
	}
	s, err := OpenStore(ctx, cfg, log)
	if errors.Is(err, ErrNoStore) {
		return Estimate{}, unknownAccount(cfg, email)
	}
	if err != nil {
		return Estimate{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := mayStart(ctx, cfg, s, email); err != nil {
		return Estimate{}, err
	}
	redisconn.RouteLog(log)
	redis, err := connect(ctx, cfg.Redis.URL, 1, log)
	if err != nil {
		return Estimate{}, err
	}
	defer func() { err = errors.Join(err, redis.Close()) }()
	ledger, err := quota.NewLedger(quota.Options{
		Redis: redis.Ledger, Projects: projects, Scale: cfg.Scale, KeyPrefix: cfg.Redis.LedgerPrefix, Plain: true,
	})
	if err != nil {
		return Estimate{}, err
	}
	gmail, err := openGoogle(cfg, ledger, log, nil)
	if err != nil {
		return Estimate{}, err
	}
	defer gmail.Close()
	return Estimator{Store: s, Ledger: ledger, Google: gmail, Projects: projects, Scale: cfg.Scale,
		MaxMessageBytes: int64(cfg.Worker.MaxMessageBytes)}.Estimate(ctx, email, filter, o)
}
