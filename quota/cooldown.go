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

// encode is the cool-down as Redis keeps it, behind the numbers of hold.lua.
func (c Cooldown) encode() string {
	c.Until = time.Time{}
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings
	}
	return string(text)
}

const toldSize = 13 // bytes of hold.lua's numbers

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
