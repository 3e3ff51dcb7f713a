package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"headroom/quota"
)

// people list messages in the mailboxes that are being backfilled, through the
// same ledger, and never wait for quota.
type people struct {
	url    string
	path   string // what they ask for
	scale  int
	client *http.Client
	conns  *http.Transport

	mu     sync.Mutex
	calls  []visit
	denied map[string]int64 // by limit and what of it bound
}

// visit is a call that was admitted.
type visit struct {
	at   time.Time
	user string
	cost int64
}

func newPeople(s *site, scale int) *people {
	p := &people{url: s.url, path: "/gmail/v1/users/me/messages?maxResults=10", scale: scale, denied: map[string]int64{}, conns: http.DefaultTransport.(*http.Transport).Clone()}
	p.client = &http.Client{Timeout: 30 * time.Second,
		Transport: &quota.Transport{Base: p.conns, Limiter: s.process.Ledger(), Scale: scale, Observe: p.observe}}
	return p
}

func (p *people) observe(o quota.Observation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if denied, ok := errors.AsType[*quota.DeniedError](o.Err); ok {
		p.denied[fmt.Sprintf("%s (%s)", denied.Limit, denied.Bound)]++
	} else if o.Err == nil {
		p.calls = append(p.calls, visit{time.Now(), o.Caller.User, o.Cost})
	}
}

// run calls as the load says, in every account by itself, until stop is closed.
// The error is that of a call which failed for another reason than quota.
func (p *people) run(ctx context.Context, stop <-chan struct{}, load laneLoad, accounts []string) error {
	defer p.conns.CloseIdleConnections() // a server that stops waits for those that were never used
	group, ctx := errgroup.WithContext(ctx)
	for seed, email := range accounts {
		group.Go(func() error {
			began := time.Now()
			var calls errgroup.Group
			for _, d := range load.demands(uint64(seed), time.Hour) {
				select {
				case <-time.After(time.Until(began.Add(d.at / time.Duration(p.scale)))):
				case <-stop:
					return calls.Wait()
				case <-ctx.Done():
					return calls.Wait()
				}
				calls.Go(func() error { return p.call(ctx, email) })
			}
			return calls.Wait()
		})
	}
	return group.Wait()
}

// call asks for what people look at, by default messages, for interactiveCost units.
func (p *people) call(ctx context.Context, email string) error {
	ctx = quota.WithCaller(ctx, quota.Caller{Project: benchProject, User: email, Lane: quota.Interactive})
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+p.path, http.NoBody)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+email)
	answer, err := p.client.Do(r)
	if _, denied := errors.AsType[*quota.DeniedError](err); denied || ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusForbidden && answer.StatusCode != http.StatusTooManyRequests {
		return fmt.Errorf("people in %s: %s", email, answer.Status) // the fake's meter counts refusals
	}
	return nil
}

// spent is how many calls, for how many units, people made in an account between
// two moments.
func (p *people) spent(email string, from, to time.Time) (calls, units int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.calls {
		if v.user == email && !v.at.Before(from) && !v.at.After(to) {
			calls++
			units += v.cost
		}
	}
	return calls, units
}
