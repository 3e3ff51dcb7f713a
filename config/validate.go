package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"headroom/quota"
	"headroom/quota/price"
)

// problems collects errors.
type problems []error

func (p *problems) check(ok bool, key, rule string, args ...any) {
	if !ok {
		*p = append(*p, fmt.Errorf("%s: %s", key, fmt.Sprintf(rule, args...)))
	}
}

// Validate returns all problems at once, joined; each names its key and the rule. It
// does not know whether price lists of the given names exist.
func (c Config) Validate() error {
	var p problems
	c.Google.validate(&p)
	c.Redis.validate(&p)
	p.check(c.Quota.FailOpen >= 0 && c.Quota.FailOpen <= 1, "quota.fail_open", "must be a share of each limit from 0 (none) to 1, not %v", c.Quota.FailOpen)
	p.check(c.Store.Path != "", "store.path", "must not be empty")
	c.Worker.validate(&p)
	c.Fairness.validate(&p)
	_, err := ParseTick(c.Scheduler.Tick)
	p.check(err == nil, "scheduler.tick", "must be a cron specification such as \"@every 2s\" (%v)", err)
	p.check(c.Sync.Interval == 0 || c.Sync.Interval >= time.Second, "sync.interval",
		"must be a second or longer, or 0 for syncs that are asked for only, not %s", c.Sync.Interval)
	c.Schedules.validate(&p)
	c.Push.validate(&p, c.Google)
	p.check(validAddress(c.Web.Listen), "web.listen", "must be host:port, such as 127.0.0.1:8080, not %q", URL(c.Web.Listen))
	p.check(!slices.ContainsFunc(c.Web.Hosts, func(host string) bool { return host == "" || strings.ContainsAny(host, ":/* ") }),
		"web.hosts", "must be names such as headroom.example.com, without port or pattern, not %q", urls(c.Web.Hosts))
	p.check(c.Metrics.Listen == "" || validAddress(c.Metrics.Listen), "metrics.listen",
		"must be host:port, such as 127.0.0.1:9090, or empty not to listen, not %q", URL(c.Metrics.Listen))
	oneOf(&p, "log.level", c.Log.Level, "debug", "info", "warn", "error")
	oneOf(&p, "log.format", c.Log.Format, "auto", "console", "json")
	p.check(c.Scale >= 1 && c.Scale <= 1000, "scale", "must be from 1 to 1000, not %d", c.Scale)
	return errors.Join(p...)
}

func oneOf[T ~string](p *problems, key string, value T, allowed ...T) {
	p.check(slices.Contains(allowed, value), key, "must be one of %s, not %q", joined(allowed), value)
}

func joined[T ~string](names []T) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = string(name)
	}
	return strings.Join(texts, ", ")
}

// projectName matches names that fit into the ledger's keys and a command line,
// including Google's ids that belong to a domain: example.com:mail.
var projectName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,126}$`)

func (g Google) validate(p *problems) {
	if g.Endpoint != "" {
		u, err := url.Parse(g.Endpoint.Reveal())
		p.check(err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "",
			"google.endpoint", "must be an http or https URL, not %q", g.Endpoint)
	}
	for _, name := range slices.Sorted(maps.Keys(g.Projects)) {
		key := "google.projects." + name
		p.check(projectName.MatchString(name), key,
			"the name must begin with a letter or digit and hold at most 127 letters, digits, dots, colons, dashes and underscores")
		g.Projects[name].validate(p, key)
	}
}

func (pr Project) validate(p *problems, key string) {
	p.check(len(pr.Prices) > 0, key+".prices", "must name at least one price list")
	apis := map[string]string{}
	for _, list := range pr.Prices {
		api, _, _ := strings.Cut(list, "-")
		p.check(apis[api] == "", key+".prices", "%s and %s are price lists of one API; keep one", apis[api], list)
		apis[api] = list
	}
	for _, list := range slices.Sorted(maps.Keys(pr.Limits)) {
		l := pr.Limits[list]
		k := key + ".limits." + list
		p.check(slices.Contains(pr.Prices, list), k, "is not among the project's prices (%s)", strings.Join(pr.Prices, ", "))
		p.check(l.UserMinute >= 0 && l.UserMinute <= price.MaxUnits, k+".user_minute", "must be a number of units, or 0 for the list's own")
		p.check(l.ProjectMinute >= 0 && l.ProjectMinute <= price.MaxUnits, k+".project_minute", "must be a number of units, or 0 for the list's own")
	}
	pr.validateCosts(p, key+".costs")
	pr.validateBudgets(p, key+".budget")
	oneOf(p, key+".mode", pr.Mode, quota.Modes...)
	pr.Lanes.validate(p, key+".lanes")
}

// validateCosts checks the form of costs. The price list knows which methods exist.
func (pr Project) validateCosts(p *problems, key string) {
	units := func(key string, n int64) {
		p.check(n >= 1 && n <= price.MaxUnits, key, "must be from 1 to %d units, not %d", int64(price.MaxUnits), n)
	}
	for _, list := range slices.Sorted(maps.Keys(pr.Costs)) {
		k := key + "." + list
		p.check(slices.Contains(pr.Prices, list), k, "is not among the project's prices (%s)", strings.Join(pr.Prices, ", "))
		for _, method := range slices.Sorted(maps.Keys(pr.Costs[list])) {
			cost, k := pr.Costs[list][method], k+"."+method
			if cost.Formats == nil {
				units(k, cost.Units)
				continue
			}
			p.check(len(cost.Formats) > 0, k, "must be a number of units, or name at least one format")
			for _, format := range slices.Sorted(maps.Keys(cost.Formats)) {
				units(k+"."+format, cost.Formats[format])
			}
		}
	}
}

func (pr Project) validateBudgets(p *problems, key string) {
	for _, list := range slices.Sorted(maps.Keys(pr.Budget)) {
		b, k := pr.Budget[list], key+"."+list
		p.check(slices.Contains(pr.Prices, list), k, "is not among the project's prices (%s)", strings.Join(pr.Prices, ", "))
		if n := b.DailyUnits; n != nil {
			p.check(*n >= 0 && *n <= price.MaxUnits, k+".daily_units", "must be from 0 (no budget) to %d units, not %d", int64(price.MaxUnits), *n)
			p.check(!b.Hard || *n != 0, k+".hard", "needs daily_units beside it, or there is nothing to bind")
		}
		if b.AtEnd != "" {
			oneOf(p, k+".at_end", b.AtEnd, price.AtEnds...)
		}
		p.check(!b.Hard || b.AtEnd == "" || b.AtEnd == price.AtEndPause, k+".hard", "needs at_end: pause, or there is nothing to bind")
		if a := b.Ahead; a != nil {
			p.check(*a > 0 && *a <= 1, k+".ahead", "must be a share of the budget above 0 and at most 1 (not paced), not %v", *a)
		}
	}
}

func (l Lanes) validate(p *problems, key string) {
	l.Interactive.validate(p, key+".interactive")
	if pace := l.Interactive.Pace; pace != nil && *pace > 0 {
		p.check(false, key+".interactive.pace", "must be 0: what people wait for is not paced")
	}
	l.Sync.validate(p, key+".sync")
	Lane{l.Backfill.Ceiling, l.Backfill.Pace, l.Backfill.InFlight}.validate(p, key+".backfill")
	if f := l.Backfill.Floor; f != nil {
		p.check(*f >= 0 && *f <= 1, key+".backfill.floor", "must be a share of the limit from 0 (the ceiling does not give way) to 1, not %v", *f)
	}
}

func (l Lane) validate(p *problems, key string) {
	if c := l.Ceiling; c != nil { // !(x > y) also catches NaN
		p.check(*c > 0 && *c <= 1, key+".ceiling", "must be a share of the limit above 0 and at most 1, not %v", *c)
	}
	if s := l.Pace; s != nil {
		p.check(*s >= 0 && *s <= 60, key+".pace",
			"must be 0 (not paced) or at most 60, a multiple of ceiling/60 per second, not %v", *s)
	}
	if n := l.InFlight; n != nil {
		p.check(*n >= 1 && *n <= 1000, key+".in_flight", "must be from 1 to 1000, not %d (Google accepts about 10)", *n)
	}
}

// prefix matches a prefix of keys or queue names. Braces would change the slot of keys
// in a Redis Cluster.
var prefix = regexp.MustCompile(`^[A-Za-z0-9._:-]{0,64}$`)

func (r Redis) validate(p *problems) {
	u, err := url.Parse(r.URL.Reveal())
	ok := err == nil && (u.Scheme == "unix" && u.Path != "" || (u.Scheme == "redis" || u.Scheme == "rediss") && u.Host != "")
	p.check(ok, "redis.url", "must be redis://, rediss:// or unix:// and an address, not %q", r.URL)
	p.check(prefix.MatchString(r.QueuePrefix), "redis.queue_prefix", "may hold up to 64 letters, digits and . _ : -")
	p.check(prefix.MatchString(r.LedgerPrefix), "redis.ledger_prefix", "may hold up to 64 letters, digits and . _ : -")
}

func (w Worker) validate(p *problems) {
	p.check(w.Concurrency >= 1 && w.Concurrency <= 10000, "worker.concurrency", "must be from 1 to 10000, not %d", w.Concurrency)
	p.check(w.InFlight >= 1 && w.InFlight <= 50, "worker.in_flight", "must be from 1 to 50, not %d (10 per account is safe)", w.InFlight)
	p.check(w.Slice >= 100*time.Millisecond && w.Slice <= time.Minute, "worker.slice", "must be from 100ms to 1m, not %s", w.Slice)
	p.check(w.Lease >= time.Second && w.Lease <= time.Minute, "worker.lease", "must be from 1s to 1m, not %s", w.Lease)
	p.check(w.MessageBytesInFlight >= 1<<20, "worker.message_bytes_in_flight", "must be at least 1MiB, not %s", w.MessageBytesInFlight)
}

func validAddress(s string) bool {
	_, port, err := net.SplitHostPort(s)
	n, portErr := strconv.Atoi(port)
	return err == nil && portErr == nil && n >= 0 && n <= 65535
}

// ParseTick reads a cron specification: five fields, six with seconds in front,
// or a descriptor such as "@every 2s".
func ParseTick(spec string) (schedule cron.Schedule, err error) {
	defer func() { // the parser panics if no space follows "TZ="
		if recover() != nil {
			schedule, err = nil, fmt.Errorf("cannot read %q", spec)
		}
	}()
	return tickParser.Parse(spec)
}

var tickParser = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
