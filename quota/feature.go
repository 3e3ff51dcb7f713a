package quota

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A feature is a part of Google's service with a limit of its own, which a refusal
// names behind its moment: "User-rate limit exceeded.  Retry after ... (Mail
// sending)" (seen in two public threads, 2026). It closes that part only.
type feature struct {
	name    string
	says    []string // one of them, in lower case, is part of what the refusal names
	methods []string // method ids, or how they begin
}

// features is the table of them: the first that fits decides. None is about reading
// mail or events: a refusal that names anything else closes the account.
var features = []feature{
	{"send-as addresses", []string{"send-as", "send as", "alias"}, []string{"gmail.users.settings.sendAs."}},
	{"mail sending", []string{"sending", "send", "outgoing", "outbound", "recipient", "smtp"},
		[]string{"gmail.users.messages.send", "gmail.users.drafts.send"}},
	{"forwarding rules", []string{"forward"}, []string{"gmail.users.settings.forwardingAddresses.", "gmail.users.settings.filters.",
		"gmail.users.settings.getAutoForwarding", "gmail.users.settings.updateAutoForwarding"}},
	{"filters", []string{"filter"}, []string{"gmail.users.settings.filters."}},
	{"delegates", []string{"delegat"}, []string{"gmail.users.settings.delegates."}},
	{"vacation responder", []string{"vacation", "auto-reply", "autoreply", "responder"},
		[]string{"gmail.users.settings.getVacation", "gmail.users.settings.updateVacation"}},
	{"settings", []string{"setting"}, []string{"gmail.users.settings."}},
	{"mail import", []string{"import", "insert", "migrat", "upload"}, []string{"gmail.users.messages.import", "gmail.users.messages.insert"}},
	{"drafts", []string{"draft"}, []string{"gmail.users.drafts.create", "gmail.users.drafts.update", "gmail.users.drafts.delete"}},
	{"labels", []string{"label"}, []string{"gmail.users.labels.create", "gmail.users.labels.update", "gmail.users.labels.patch", "gmail.users.labels.delete"}},
	{"deletion", []string{"delet", "trash"}, []string{"gmail.users.messages.delete", "gmail.users.messages.batchDelete", "gmail.users.messages.trash",
		"gmail.users.threads.delete", "gmail.users.threads.trash"}},
	{"push notifications", []string{"push", "notification", "watch"},
		[]string{"gmail.users.watch", "gmail.users.stop", "calendar.events.watch", "calendar.calendarList.watch", "calendar.channels.stop"}},
	{"sharing", []string{"sharing", "acl", "access control"}, []string{"calendar.acl."}},
	{"calendar creation", []string{"calendar creation", "creating calendars", "create calendar"}, []string{"calendar.calendars.insert"}},
	{"invitations", []string{"invit", "guest", "attendee", "event creation", "creating events"},
		[]string{"calendar.events.insert", "calendar.events.import", "calendar.events.quickAdd", "calendar.events.update", "calendar.events.patch", "calendar.events.move"}},
}

var namedFeature = regexp.MustCompile(`(?i)retry after\s+\S+\s*\(([^()]+)\)`)

// featureIn returns the name of the feature that a refusal's message names, "" if
// it names none that is known.
func featureIn(message string) string {
	found := namedFeature.FindStringSubmatch(message)
	if found == nil {
		return ""
	}
	words := strings.ToLower(found[1])
	for _, f := range features {
		if slices.ContainsFunc(f.says, func(s string) bool { return strings.Contains(words, s) }) {
			return f.name
		}
	}
	return ""
}

// featuresOf returns the names of the features that a method is part of.
func featuresOf(method string) (names []string) {
	for _, f := range features {
		if slices.ContainsFunc(f.methods, func(m string) bool { return strings.HasPrefix(method, m) }) {
			names = append(names, f.name)
		}
	}
	return names
}

// featuresKeys are a sorted set of a user's closed features by when each opens
// again, in ms, and a hash of what is known of each.
func (p *plan) featuresKeys(user string) (untils, about string) {
	key := p.base + "features:" + lower(user)
	return key, key + ":about"
}

// closeFeature closes a feature for a user. A later refusal may make the moment
// later, never earlier.
func (l *Ledger) closeFeature(ctx context.Context, charge Charge, r Refusal) error {
	p, err := l.plan(charge.Caller, charge.API)
	if err != nil {
		return err
	}
	open, now, err := l.closedFeatures(ctx, charge.Caller, charge.API, p)
	if err != nil {
		return err
	}
	var before time.Time
	if i := slices.IndexFunc(open, func(c Cooldown) bool { return c.Feature == r.Feature }); i >= 0 {
		before = open[i].Until
	}
	about := Cooldown{Scope: r.Scope, Feature: r.Feature, Reason: r.Reason, Words: r.Words}
	until := now.Add(r.Wait)
	o := order{caller: charge.Caller, api: charge.API, user: true, about: about}
	l.journal.answered(charge, r, until)
	l.began(o, until, before, now)
	if !until.After(before) {
		return nil
	}
	untils, abouts := p.featuresKeys(charge.Caller.User)
	pipe := l.rdb.TxPipeline()
	pipe.Do(ctx, "ZADD", untils, "GT", until.UnixMilli(), r.Feature)
	pipe.HSet(ctx, abouts, r.Feature, about.encode())
	pipe.Expire(ctx, untils, maxWait+time.Hour)
	pipe.Expire(ctx, abouts, maxWait+time.Hour)
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("close %s of %s: %w", r.Feature, charge.Caller.User, unavailable(err))
	}
	return nil
}

// ClosedFeatures returns what Google has closed to a user besides whole limits, see
// [Refusal.Feature].
func (l *Ledger) ClosedFeatures(ctx context.Context, c Caller, api string) ([]Cooldown, error) {
	p, err := l.plan(c, api)
	if err == nil {
		err = checkUser(c.User)
	}
	if err != nil {
		return nil, err
	}
	closed, _, err := l.closedFeatures(ctx, c, api, p)
	return closed, err
}

func (l *Ledger) closedFeatures(ctx context.Context, c Caller, api string, p *plan) (closed []Cooldown, now time.Time, err error) {
	untils, abouts := p.featuresKeys(c.User)
	pipe := l.rdb.Pipeline()
	clock := pipe.Time(ctx)
	all := pipe.ZRangeWithScores(ctx, untils, 0, -1)
	about := pipe.HGetAll(ctx, abouts)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, now, fmt.Errorf("features closed to %s: %w", c.User, unavailable(err))
	}
	if now = clock.Val(); l.now != nil {
		now = l.now()
	}
	for _, z := range all.Val() {
		until := time.UnixMilli(int64(z.Score))
		if !until.After(now) {
			continue
		}
		name := fmt.Sprint(z.Member)
		c := decodeCooldown(strings.Repeat("\x00", toldSize) + about.Val()[name])
		c.Feature, c.Until = name, until
		closed = append(closed, c)
	}
	return closed, now, nil
}

// open refuses a call of a feature that is closed to its user. Calls that read are
// of none, and cost nothing here.
func (l *Ledger) open(ctx context.Context, c Caller, api string, cost int64, names []string) error {
	if len(names) == 0 {
		return nil
	}
	b, err := l.book(c.Project, api)
	if err != nil {
		return err
	}
	p, err := l.plan(c, api)
	if err != nil {
		return err
	}
	var closed []Cooldown
	var now time.Time
	err = l.reach(ctx, b, c, func(ctx context.Context) (err error) {
		closed, now, err = l.closedFeatures(ctx, c, api, p)
		return err
	})
	if errors.Is(err, ErrUnavailable) && b.breaker.aids(c.Lane) {
		return nil // people go on; Google will say it again
	}
	for _, about := range closed {
		if slices.Contains(names, about.Feature) {
			wait := about.Until.Sub(now)
			l.metrics.denied(c, LimitFeature, BoundHold)
			denied := &DeniedError{Caller: c, Cost: cost, Limit: LimitFeature, Bound: BoundHold, RetryAfter: wait, At: about.Until, Cooldown: &about}
			l.journal.decided(c, api, cost, Decision{}, denied)
			return denied
		}
	}
	return err
}

// LimitFeature is the limit of a feature of Google's, such as sending mail, that a
// refusal has closed. [DeniedError.Cooldown] says which.
const LimitFeature = "user-feature"
