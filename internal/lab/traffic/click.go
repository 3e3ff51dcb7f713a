package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"headroom/quota/price"
)

const (
	clickShare    = 0.10 // of each user's limit, on average
	clicksMin     = 3    // calls that a user makes in a row
	clicksMax     = 15
	clickUnits    = 300 // the most that those in a row may cost
	clicksAtOnce  = 3   // requests in flight of one user; the backfill leaves them
	openedOfCalls = 0.6 // of the calls open a message, the rest list some
)

const messagesPath = "/gmail/v1/users/me/messages"

// Click lets each user open and list messages until stop is closed or ctx ends: in
// bursts, as a person clicks, with pauses that keep the user at a tenth of its
// limit by the price list. After stop a call that was begun is answered first, so
// that what is charged has also reached Google. The error is that of a call that
// failed for another reason than quota.
func (t *Traffic) Click(ctx context.Context, stop <-chan struct{}, list *price.List, users []string) error {
	return t.each(ctx, users, func(ctx context.Context, seed uint64, user string) error {
		c := clicker{traffic: t, list: list, user: user, rnd: rand.New(rand.NewPCG(seed, 10))}
		return c.run(ctx, stop)
	})
}

// A clicker is one user.
type clicker struct {
	traffic *Traffic
	list    *price.List
	user    string
	rnd     *rand.Rand
	ids     []string // of messages to open
}

func (c *clicker) run(ctx context.Context, stop <-chan struct{}) error {
	perSecond := clickShare * float64(c.list.Limits[price.UserMinute].Units) / 60 * float64(c.traffic.opts.Scale)
	if err := c.inbox(ctx); err != nil {
		return err
	}
	for {
		burst, units := c.plan()
		began := time.Now()
		if err := c.burst(ctx, stop, burst); err != nil {
			return err
		}
		pause := time.Duration(float64(units) / perSecond * float64(time.Second) * (0.8 + 0.4*c.rnd.Float64()))
		select {
		case <-time.After(max(0, pause-time.Since(began))):
		case <-stop:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// inbox finds messages to open.
func (c *clicker) inbox(ctx context.Context) error {
	body, err := c.traffic.get(ctx, c.user, messagesPath+"?maxResults=50")
	if err != nil || body == nil {
		return err
	}
	var page struct{ Messages []struct{ ID string } }
	if err := json.Unmarshal(body, &page); err != nil {
		return fmt.Errorf("list messages of %s: %w", c.user, err)
	}
	for _, m := range page.Messages {
		c.ids = append(c.ids, m.ID)
	}
	return nil
}

// plan chooses what the user does next: paths to open or list messages.
func (c *clicker) plan() (burst []string, units int64) {
	open, _ := c.list.Cost("gmail.users.messages.get", "full")
	list, _ := c.list.Cost("gmail.users.messages.list", "")
	for range clicksMin + c.rnd.IntN(clicksMax-clicksMin+1) {
		path, cost := messagesPath+"?maxResults=20", list
		if len(c.ids) > 0 && c.rnd.Float64() < openedOfCalls {
			path, cost = messagesPath+"/"+c.ids[c.rnd.IntN(len(c.ids))]+"?format=full", open
		}
		if units+cost > clickUnits {
			break
		}
		burst, units = append(burst, path), units+cost
	}
	return burst, units
}

func (c *clicker) burst(ctx context.Context, stop <-chan struct{}, paths []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clicksAtOnce)
	for _, path := range paths {
		group.Go(func() error {
			select {
			case <-stop:
				return nil
			default:
			}
			_, err := c.traffic.get(ctx, c.user, path)
			return err
		})
	}
	return group.Wait()
}
