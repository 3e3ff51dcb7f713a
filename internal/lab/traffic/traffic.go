// Package traffic makes the interactive calls of a demo or a benchmark: users who
// list and open messages in accounts that are being backfilled, through the same
// ledger, and who never wait for quota. It plays a planned load ([Traffic.Play]),
// or clicks as one user does ([Traffic.Click]).
package traffic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"headroom/quota"
)

// callBound is how long one call may take.
const callBound = 30 * time.Second

// Options configures a [Traffic]. All fields are required.
type Options struct {
	URL     string // of the fake Google
	Project string
	Ledger  *quota.Ledger
	Scale   int // quota time runs so many times faster
}

// A Traffic makes calls and notes how they fare. It is safe for concurrent use.
type Traffic struct {
	opts   Options
	client *http.Client
	conns  *http.Transport

	mu     sync.Mutex
	calls  []call
	denied map[string]int64 // by limit and what of it bound
}

// call is one call that was admitted or denied.
type call struct {
	at     time.Time
	user   string
	units  int64
	waited time.Duration // for the ledger
	denied bool
}

// New makes a Traffic without calls.
func New(o Options) *Traffic {
	t := &Traffic{opts: o, denied: map[string]int64{}, conns: http.DefaultTransport.(*http.Transport).Clone()}
	t.client = &http.Client{Timeout: callBound,
		Transport: &quota.Transport{Base: t.conns, Limiter: o.Ledger, Scale: o.Scale, Observe: t.observe}}
	return t
}

func (t *Traffic) observe(o quota.Observation) {
	denied, isDenied := errors.AsType[*quota.DeniedError](o.Err)
	if o.Err != nil && !isDenied {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := call{at: time.Now(), user: o.Caller.User, waited: o.Waited, denied: isDenied}
	if isDenied {
		t.denied[fmt.Sprintf("%s (%s)", denied.Limit, denied.Bound)]++
	} else {
		c.units = o.Cost
	}
	t.calls = append(t.calls, c)
}

// get makes one call. A call that the ledger or Google refuses, or that ends with
// ctx, is no error: the figures and the fake's meter count it.
func (t *Traffic) get(ctx context.Context, user, path string) ([]byte, error) {
	ctx = quota.WithCaller(ctx, quota.Caller{Project: t.opts.Project, User: user, Lane: quota.Interactive})
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.opts.URL+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+user)
	answer, err := t.client.Do(r)
	if _, denied := errors.AsType[*quota.DeniedError](err); denied || ctx.Err() != nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if ctx.Err() != nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	switch answer.StatusCode {
	case http.StatusOK:
		return body, nil
	case http.StatusForbidden, http.StatusTooManyRequests:
		return nil, nil
	}
	return nil, fmt.Errorf("interactive call of %s: %s", user, answer.Status)
}

// each runs the calls of each user by themselves. All connections are closed when
// it returns: a server that stops would wait for one that was opened ahead and
// never used.
func (t *Traffic) each(ctx context.Context, users []string, do func(ctx context.Context, seed uint64, user string) error) error {
	defer t.conns.CloseIdleConnections()
	group, ctx := errgroup.WithContext(ctx)
	for seed, user := range users {
		group.Go(func() error { return do(ctx, uint64(seed), user) })
	}
	return group.Wait()
}

// Play makes the calls of a load to a path for each user, until stop is closed or
// ctx ends. The error is that of a call that failed for another reason than quota.
func (t *Traffic) Play(ctx context.Context, stop <-chan struct{}, load Load, path string, users []string) error {
	return t.each(ctx, users, func(ctx context.Context, seed uint64, user string) error {
		began := time.Now()
		var calls errgroup.Group
		for _, d := range load.Demands(seed, time.Hour) {
			select {
			case <-time.After(time.Until(began.Add(d.At / time.Duration(t.opts.Scale)))):
			case <-stop:
				return calls.Wait()
			case <-ctx.Done():
				return calls.Wait()
			}
			calls.Go(func() error {
				_, err := t.get(ctx, user, path)
				return err
			})
		}
		return calls.Wait()
	})
}

// Figures are how the calls fared.
type Figures struct {
	Calls   int // admitted and denied
	Units   int64
	Denied  int           // by the ledger
	WaitP50 time.Duration // for the ledger
	WaitP99 time.Duration
}

// Figures sums up the calls so far.
func (t *Traffic) Figures() Figures {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := Figures{Calls: len(t.calls)}
	waits := make([]time.Duration, len(t.calls))
	for i, c := range t.calls {
		f.Units += c.units
		waits[i] = c.waited
		if c.denied {
			f.Denied++
		}
	}
	slices.Sort(waits)
	f.WaitP50, f.WaitP99 = percentile(waits, 50), percentile(waits, 99)
	return f
}

// percentile reads the p-th percentile off sorted values, by nearest rank.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}

// DeniedBy counts the denied calls by the limit and what of it bound.
func (t *Traffic) DeniedBy() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.denied)
}

// Spent is how many calls of a user were admitted between two moments, and for how
// many units.
func (t *Traffic) Spent(user string, from, to time.Time) (calls, units int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.calls {
		if c.user == user && !c.denied && !c.at.Before(from) && !c.at.After(to) {
			calls++
			units += c.units
		}
	}
	return calls, units
}
