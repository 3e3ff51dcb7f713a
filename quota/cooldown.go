package quota

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"
	"unicode"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
)

// A Cooldown is a pause that one of Google's refusals demanded: who or what is closed
// to every lane, until when, and in whose words.
type Cooldown struct {
	Scope   Scope     `json:"scope,omitempty"`   // the kind of limit; "" if an operator or a service closed it
	Feature string    `json:"feature,omitempty"` // what of Google's is closed; "" all of it
	Reason  string    `json:"reason,omitempty"`  // Google's, for instance "dailyLimitExceeded"
	Words   string    `json:"words,omitempty"`   // Google's
	Until   time.Time `json:"until,omitzero"`    // on the clock of Redis
}

// limits says in words what kinds of limits Google refuses by.
var limits = map[Scope]string{
	ScopeUser:        "limit of the user's minute",
	ScopeProject:     "limit of the project's minute",
	ScopeConcurrency: "limit of the user's calls in flight",
	ScopeBandwidth:   "limit of the user's bandwidth or day",
	ScopeDay:         "limit of the project's day",
	ScopeAbuse:       "undisclosed usage limit",
}

// String says what kind of limit refused, in whose words; not until when.
func (c Cooldown) String() string {
	limit, known := limits[c.Scope]
	if !known {
		return "cool-down"
	}
	if c.Feature != "" {
		limit = "limit of " + c.Feature
	}
	text := "Google's " + limit
	switch {
	case c.Words != "" && c.Reason != "":
		return fmt.Sprintf("%s (%s: %q)", text, c.Reason, c.Words)
	case c.Words != "" || c.Reason != "":
		return fmt.Sprintf("%s (%s)", text, cmp.Or(c.Reason, c.Words))
	}
	return text
}

// maxWords is how much is kept of Google's words, in bytes.
const maxWords = 240

// wordsOf makes one line of a message, without what cannot be seen.
func wordsOf(message string) string {
	text := strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, message)), " ")
	if len(text) > maxWords {
		text = strings.ToValidUTF8(text[:maxWords], "") + "..."
	}
	return text
}

// encode is the cool-down as Redis keeps it, behind the numbers of cooldown.lua.
func (c Cooldown) encode() string {
	c.Until = time.Time{}
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings
	}
	return string(text)
}

var toldSize = offsets["TOLD.SIZE"]

func decodeCooldown(told string) (c Cooldown) {
	if len(told) > toldSize {
		_ = json.Unmarshal([]byte(told[toldSize:]), &c) // what another version wrote there is not known
	}
	return c
}

// Cooldown returns the cool-down that this process knows to hold for a caller's
// project or user, whichever ends later. It asks nobody.
func (l *Ledger) Cooldown(c Caller, api string) (Cooldown, bool) {
	b, err := l.book(c.Project, api)
	if err != nil {
		return Cooldown{}, false
	}
	now := time.Now()
	b.breaker.mu.Lock()
	defer b.breaker.mu.Unlock()
	hold, user := b.breaker.local.project.hold, b.breaker.local.users[lower(c.User)]
	project := true
	if user != nil && user.hold.until.After(hold.until) {
		hold, project = user.hold, false
	}
	if !hold.until.After(now) {
		return Cooldown{}, false
	}
	about := hold.about
	about.Until = hold.until
	if project {
		about.Until = about.Until.Add(l.spread(c, b.rules.Load().all[c.Lane], hold.until.Sub(now)))
	}
	return about, true
}

// resumeOver is over how many buckets the background comes back after a project's
// cool-down: all of its accounts wait for the same moment.
const resumeOver = 20

// spread is how much later than a project's cool-down a caller of the background
// comes back: each at its own moment within the first third of a minute, and within
// no longer than it waited.
func (l *Ledger) spread(c Caller, p *plan, wait time.Duration) time.Duration {
	if c.Lane == Interactive || p == nil {
		return 0
	}
	hash := fnv.New32a()
	hash.Write([]byte(lower(c.User)))
	over := min(resumeOver*time.Duration(p.width)*time.Microsecond, wait)
	return time.Duration(float64(over) * float64(hash.Sum32()) / (1 << 32))
}

// explain says which cool-down refused a call. Where this process does not know it,
// it asks Redis once.
func (l *Ledger) explain(ctx context.Context, b *book, p *plan, e *DeniedError) {
	user := e.Caller.User
	project := b.list.Limits[e.Limit].Per == "project"
	if project {
		user = ""
	}
	about := l.aboutHold(ctx, b, p, user, e.At)
	e.Cooldown = &about
	if project {
		e.Later = l.spread(e.Caller, p, e.RetryAfter)
	}
}

// aboutHold finds out what is known of the cool-down of a user, or of the project,
// that ends at a moment. What it does not find out is not worth an error.
func (l *Ledger) aboutHold(ctx context.Context, b *book, p *plan, user string, until time.Time) Cooldown {
	br := b.breaker
	br.mu.Lock()
	known := br.local.scope(user).hold.about
	br.mu.Unlock()
	if known.Until.Equal(until) {
		return known
	}
	key := p.keys("")[4]
	if user != "" {
		key = p.keys(user)[5]
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	told, err := l.rdb.Get(ctx, key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return Cooldown{Until: until}
	}
	about := decodeCooldown(told)
	about.Until = until
	br.mu.Lock()
	defer br.mu.Unlock()
	scope := br.local.scope(user)
	scope.hold.about = about
	return about
}

// longer is by how much a cool-down must grow to be told as another one.
const longer = 2 * time.Minute

// began tells operators of a cool-down, once: not of refusals that came together,
// and not of each that pushes its end a little.
func (l *Ledger) began(o order, until, before, now time.Time) {
	if o.about.Scope == ScopeNone || before.After(now) && until.Sub(before) < longer {
		return
	}
	l.metrics.closings.WithLabelValues(o.api, string(o.about.Scope)).Inc()
	fields := []zap.Field{zap.String("project", o.caller.Project), zap.String("api", o.api), zap.String("limit", string(o.about.Scope)),
		zap.String("reason", o.about.Reason), zap.String("google_says", o.about.Words), zap.Time("until", until.UTC())}
	if o.about.Feature != "" {
		fields = append(fields, zap.String("feature", o.about.Feature))
	}
	if o.user {
		fields = append(fields, zap.String("account", lower(o.caller.User)))
		l.log.Warn("google refused, an account waits", fields...)
		return
	}
	l.log.Warn("google refused, a project waits", fields...)
}

// HoldUser closes a user's limits for an API to every lane, for so long: a
// cool-down that Google demanded. It never shortens one that is longer. It
// returns when it ends, on the clock of Redis.
func (l *Ledger) HoldUser(ctx context.Context, project, user, api string, wait time.Duration) (time.Time, error) {
	return l.hold(ctx, order{caller: Caller{Project: project, User: user, Lane: Interactive}, api: api, wait: wait, user: true})
}

// HoldProject closes a project's limits for an API to every user and lane; see
// [Ledger.HoldUser].
func (l *Ledger) HoldProject(ctx context.Context, project, api string, wait time.Duration) (time.Time, error) {
	return l.hold(ctx, order{caller: Caller{Project: project, Lane: Interactive}, api: api, wait: wait})
}

// An order says what is to be closed.
type order struct {
	caller Caller
	api    string
	wait   time.Duration
	user   bool // the caller's user; else the whole project
	learn  learning
	about  Cooldown
}

// learning is what a cool-down takes from what the scope may use afterwards.
type learning int

const (
	learnNothing learning = iota
	learnRefusal          // half of it
	// learnIsolated is for a refusal that names no moment, while next to nothing was
	// spent: nothing of it, and a wait of seconds, unless the next call is refused too.
	learnIsolated
)

// hold closes a scope. Everybody is to know of it, so it does not matter whether the
// caller goes away; a Redis that does not answer in time is told later.
func (l *Ledger) hold(ctx context.Context, o order) (time.Time, error) {
	b, err := l.book(o.caller.Project, o.api)
	if err != nil {
		return time.Time{}, err
	}
	if !o.user {
		o.caller.User = ""
	} else if err := checkUser(o.caller.User); err != nil {
		return time.Time{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	known := localHold{until: time.Now().Add(o.wait), learn: o.learn, about: o.about}
	var until, before, now time.Time
	err = l.reach(ctx, b, o.caller, func(ctx context.Context) (err error) {
		until, before, now, err = l.writeHold(ctx, o)
		return err
	})
	switch {
	case errors.Is(err, ErrUnavailable) || err != nil && ctx.Err() != nil:
		known.untold = true
		until = known.until
		l.began(o, until, time.Time{}, time.Now())
	case err == nil:
		known.until = time.Now().Add(until.Sub(now))
		l.began(o, until, before, now)
	}
	known.about.Until = until
	b.breaker.noteHold(o.caller.User, known, err)
	return until, err
}

// writeHold tells Redis of a hold. It returns until when the scope is closed now,
// and was before; zero: it was open.
func (l *Ledger) writeHold(ctx context.Context, o order) (until, before, now time.Time, err error) {
	p, err := l.plan(o.caller, o.api)
	if err != nil {
		return until, before, now, err
	}
	keys := p.keys(o.caller.User)
	key, note, scope := keys[0], keys[4], p.project
	if o.user {
		key, note, scope = keys[1], keys[5], p.user
	}
	args := []any{max(o.wait.Milliseconds(), 0), p.width, scope.size(), scope.ttl, int(o.learn), o.about.encode()}
	if l.now != nil {
		args = append(args, l.now().UnixMicro())
	}
	reply, err := l.eval(ctx, cooldownScript, []string{key, note}, args...)
	if err == nil && len(reply) != 3 {
		err = fmt.Errorf("an answer of %d numbers", len(reply))
	}
	if err != nil {
		return until, before, now, fmt.Errorf("hold for %s: %w", o.wait, unavailable(err))
	}
	if reply[1] > 0 {
		before = time.UnixMilli(reply[1])
	}
	return time.UnixMilli(reply[0]), before, time.UnixMilli(reply[2]), nil
}
