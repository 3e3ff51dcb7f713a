package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/option"

	"headroom/quota"
	"headroom/quota/price"
)

const (
	minCalls      = 100  // people make at least so many calls in all
	peopleShare   = 0.10 // of each account's limit, on average
	burstMin      = 3    // calls that one person makes in a row
	burstMax      = 15
	burstUnits    = 300 // the most that a burst may cost
	peopleAtOnce  = 3   // requests in flight of one account; the backfill leaves them
	callBound     = 10 * time.Second
	openedOfCalls = 0.6 // of the calls open a message, the rest list some
)

// people open and list messages in the accounts that are being backfilled: in
// bursts, as a person clicks, spread over the run.
type people struct {
	service *gmail.Service
	conns   *http.Transport
	list    *price.List
	scale   int

	mu     sync.Mutex
	calls  []call
	denied int
}

// call is one call that somebody waited for.
type call struct {
	at     time.Time
	user   string
	units  int64
	waited time.Duration // for the ledger's word
}

// People is how people fare.
type People struct {
	Calls   int
	Units   int64
	Denied  int           // refused by the ledger
	WaitP50 time.Duration // for the ledger's word
	WaitP99 time.Duration
}

func newPeople(url string, ledger *quota.Ledger, list *price.List, scale int) *people {
	p := &people{list: list, scale: scale, conns: http.DefaultTransport.(*http.Transport).Clone()}
	transport := &quota.Transport{Base: p.conns, Limiter: ledger, Scale: scale, Observe: p.observe}
	// NewService fails only on options that contradict each other.
	p.service, _ = gmail.NewService(context.Background(), option.WithEndpoint(url),
		option.WithHTTPClient(&http.Client{Transport: bearer{transport}, Timeout: callBound}))
	return p
}

// bearer shows the fake who calls.
type bearer struct{ base http.RoundTripper }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	caller, ok := quota.CallerFrom(r.Context())
	if !ok {
		return nil, quota.ErrNoCaller
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+caller.User)
	return b.base.RoundTrip(r)
}

func (p *people) observe(o quota.Observation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var denied *quota.DeniedError
	units := o.Cost
	if errors.As(o.Err, &denied) {
		p.denied++
		units = 0
	}
	p.calls = append(p.calls, call{at: time.Now(), user: o.Caller.User, units: units, waited: o.Waited})
}

// run lets people work in all accounts until stop is closed or ctx ends. After
// stop a call that was begun is answered first, so that what is charged has also
// reached Google. The error is that of a call that failed for another reason than
// quota. All connections are closed when it returns: a server that stops would
// wait for one that was opened ahead and never used.
func (p *people) run(ctx context.Context, stop <-chan struct{}) error {
	defer p.conns.CloseIdleConnections()
	group, groupCtx := errgroup.WithContext(ctx)
	for i, email := range accounts {
		group.Go(func() error { return p.person(groupCtx, stop, email, rand.New(rand.NewPCG(uint64(i), 10))) })
	}
	return ended(ctx, group.Wait())
}

// person works in one account: a burst, then a pause as long as keeps the
// account at its share of the limit.
func (p *people) person(ctx context.Context, stop <-chan struct{}, email string, rnd *rand.Rand) error {
	perSecond := peopleShare * float64(p.list.Limits[price.UserMinute].Units) / 60 * float64(p.scale)
	ctx = quota.WithCaller(ctx, quota.Caller{Project: project, User: email, Lane: quota.Interactive})
	ids, err := p.inbox(ctx)
	if err != nil {
		return err
	}
	for {
		burst, units := p.plan(rnd, ids)
		began := time.Now()
		if err := p.burst(ctx, stop, burst); err != nil {
			return err
		}
		pause := time.Duration(float64(units) / perSecond * float64(time.Second) * (0.8 + 0.4*rnd.Float64()))
		select {
		case <-time.After(max(0, pause-time.Since(began))):
		case <-stop:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// ended hides errors that only say that the run is over.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// plan chooses what somebody does next: a message to open, or "" to list some.
func (p *people) plan(rnd *rand.Rand, ids []string) (burst []string, units int64) {
	open, _ := p.list.Cost("gmail.users.messages.get", "full")
	list, _ := p.list.Cost("gmail.users.messages.list", "")
	for range burstMin + rnd.IntN(burstMax-burstMin+1) {
		id, cost := "", list
		if len(ids) > 0 && rnd.Float64() < openedOfCalls {
			id, cost = ids[rnd.IntN(len(ids))], open
		}
		if units+cost > burstUnits {
			break
		}
		burst, units = append(burst, id), units+cost
	}
	return burst, units
}

func (p *people) inbox(ctx context.Context) ([]string, error) {
	page, err := p.service.Users.Messages.List("me").MaxResults(50).Context(ctx).Do()
	if err != nil {
		return nil, fmt.Errorf("list messages: %w", err)
	}
	var ids []string
	for _, m := range page.Messages {
		ids = append(ids, m.Id)
	}
	return ids, nil
}

func (p *people) burst(ctx context.Context, stop <-chan struct{}, ids []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(peopleAtOnce)
	for _, id := range ids {
		group.Go(func() error {
			select {
			case <-stop:
				return nil
			default:
			}
			var err error
			if id == "" {
				_, err = p.service.Users.Messages.List("me").MaxResults(20).Context(ctx).Do()
			} else {
				_, err = p.service.Users.Messages.Get("me", id).Format("full").Context(ctx).Do()
			}
			var denied *quota.DeniedError
			if errors.As(err, &denied) {
				return nil // counted; somebody would see a message now
			}
			return err
		})
	}
	return group.Wait()
}

func (p *people) figures() People {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := People{Calls: len(p.calls), Denied: p.denied}
	waits := make([]time.Duration, len(p.calls))
	for i, c := range p.calls {
		f.Units += c.units
		waits[i] = c.waited
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

// units returns what people spent in one account, in all and between two moments.
func (p *people) units(user string, from, to time.Time) (all, between int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		if c.user != user {
			continue
		}
		all += c.units
		if !c.at.Before(from) && !c.at.After(to) {
			between += c.units
		}
	}
	return all, between
}
