package quota

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// Publish makes live settings hold in every process, with its next decision,
// unless settings of the same or a higher revision hold already. It returns those
// that hold. Revision 0 stands for no settings and cannot be published.
func (l *Ledger) Publish(ctx context.Context, project, api string, live Live) (Live, error) {
	b, err := l.book(project, api)
	if err != nil {
		return Live{}, err
	}
	if live.Revision == 0 {
		return Live{}, errors.New("quota: live settings without a revision")
	}
	rules, err := l.makeRules(b, live)
	if err != nil {
		return Live{}, fmt.Errorf("quota: project %s: %w", project, err)
	}
	text, err := json.Marshal(live)
	if err != nil {
		return Live{}, err
	}
	keys := rules.all[Backfill].keys("")
	// Processes whose keys have another shape look at keys of their own.
	shapes, err := l.rdb.ZRange(ctx, keys[2], 0, -1).Result()
	if err != nil {
		return Live{}, fmt.Errorf("publish settings of project %s: %w", project, unavailable(err))
	}
	revision := binary.LittleEndian.AppendUint32(nil, live.Revision)
	reply, err := l.eval(ctx, publishScript, append([]string{keys[3]}, shapes...),
		revision, text, fmt.Sprintf(":v%d-", layoutVersion))
	if err != nil {
		return Live{}, fmt.Errorf("publish settings of project %s: %w", project, unavailable(err))
	}
	if len(reply) != 1 {
		return Live{}, fmt.Errorf("%w: an answer of %d numbers", ErrUnavailable, len(reply))
	}
	if reply[0] == 0 {
		return l.Live(ctx, project, api)
	}
	l.adopt(b, rules)
	return live, nil
}

// Live returns the live settings that hold: those that were published last, and
// the zero Live where Redis has none.
func (l *Ledger) Live(ctx context.Context, project, api string) (Live, error) {
	b, err := l.book(project, api)
	if err != nil {
		return Live{}, err
	}
	live, err := l.published(ctx, b)
	if err != nil {
		return Live{}, fmt.Errorf("settings of project %s: %w", project, err)
	}
	return live, nil
}

func (l *Ledger) published(ctx context.Context, b *book) (Live, error) {
	key := b.rules.Load().all[Backfill].keys("")[3]
	text, err := l.rdb.GetRange(ctx, key, 4, -1).Result()
	if err != nil {
		return Live{}, unavailable(err)
	}
	var live Live
	if text == "" {
		return live, nil
	}
	if err := json.Unmarshal([]byte(text), &live); err != nil {
		return Live{}, fmt.Errorf("%w: settings in %s that cannot be read: %w", ErrUnavailable, key, err)
	}
	return live, nil
}

// catchUp brings the rules to the revision that Redis goes by. Where Redis has an
// older one, or none, it has lost the settings, and gets them from us.
func (l *Ledger) catchUp(ctx context.Context, b *book, revision uint32) error {
	if have := b.rules.Load().live; have.Revision > revision {
		_, err := l.Publish(ctx, b.name, b.list.API, have)
		return err
	}
	live, err := l.published(ctx, b)
	if err != nil {
		return err
	}
	rules, err := l.makeRules(b, live)
	if err != nil {
		return fmt.Errorf("%w: settings of project %s, revision %d: %w", ErrUnavailable, b.name, revision, err)
	}
	l.adopt(b, rules)
	return nil
}

// adopt puts rules in force, unless newer ones are.
func (l *Ledger) adopt(b *book, r *rules) {
	for {
		old := b.rules.Load()
		if old.live.Revision >= r.live.Revision || b.rules.CompareAndSwap(old, r) {
			return
		}
	}
}
