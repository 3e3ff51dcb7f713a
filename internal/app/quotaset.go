package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"

	"headroom/config"
	"headroom/internal/store"
	"headroom/jobs"
	"headroom/quota"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/zap"
)

// QuotaScope says for what settings hold.
type QuotaScope struct {
	Project string `json:"project"`
	Account string `json:"account,omitempty"` // all of the project's if empty
	Limit   string `json:"limit,omitempty"`   // all if empty

	mode quota.Mode // the project's own
}

// suffix is the scope within the project, after the name of a setting.
func (s QuotaScope) suffix() string {
	var b strings.Builder
	if s.Limit != "" {
		b.WriteString(" of " + s.Limit)
	}
	if s.Account != "" {
		b.WriteString(" for " + s.Account)
	}
	return b.String()
}

// QuotaRequest is a change of the quota's settings that somebody asks for.
type QuotaRequest struct {
	Target string // a project's name, or an account's address
	API    string // with Prices empty too: all to which the change applies
	Prices string // the API of this price list
	Limit  string
	Edits  []QuotaEdit
}

// QuotaSet is what came of a [QuotaRequest].
type QuotaSet struct {
	QuotaScope
	APIs []QuotaAPISet `json:"apis"`
	// Unpublished says why Redis does not have the settings yet; "": it does.
	Unpublished string `json:"unpublished,omitempty"`
}

// QuotaAPISet is what came of it for one API.
type QuotaAPISet struct {
	API      string       `json:"api"`
	Revision uint32       `json:"revision"` // that holds now; 0: nothing was ever set
	Changed  bool         `json:"changed"`  // false: all of it held already, and nothing was written
	Values   []QuotaValue `json:"values"`
	// Closer are settings of single accounts or limits that count before these.
	Closer []string `json:"closer,omitempty"`

	text string
	live quota.Live
}

// A RefusedError says that what was asked for cannot be. Nothing was written.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *RefusedError) Unwrap() error { return e.Err }

func refusef(format string, args ...any) error { return &RefusedError{fmt.Errorf(format, args...)} }

// SetQuota changes the quota's settings of a project or an account while
// processes run. It writes them to the store, and then publishes them: when it
// returns, the next decision of every process goes by them. A Redis that cannot be
// reached is no error, since processes publish what it lacks. The error is a
// [*RefusedError] when the request makes no sense.
func SetQuota(ctx context.Context, cfg config.Config, r QuotaRequest, log *zap.Logger) (set QuotaSet, err error) {
	RouteRedisLog(log)
	projects, err := Projects(cfg)
	if err != nil {
		return QuotaSet{}, err
	}
	scope, err := scopeOf(ctx, cfg, r.Target, log)
	if err != nil {
		return QuotaSet{}, err
	}
	scope.Limit, scope.mode = r.Limit, quota.Mode(cfg.Google.Projects[scope.Project].Mode)
	apis, err := r.check(scope, projects[scope.Project])
	if err != nil {
		return QuotaSet{}, err
	}
	ledger, closeLedger, err := openLedger(cfg, projects)
	if err != nil {
		return QuotaSet{}, err
	}
	defer func() { err = errors.Join(err, closeLedger()) }()

	set = QuotaSet{QuotaScope: scope}
	known, unpublished := revisions(ctx, ledger, scope.Project, apis)
	if set.APIs, err = r.write(ctx, cfg, ledger, scope, apis, known, log); err != nil {
		return QuotaSet{}, err
	}
	if unpublished == nil {
		unpublished = publish(ctx, ledger, set)
	}
	if unpublished != nil {
		set.Unpublished = fmt.Sprintf("no Redis at %s: %v", cfg.Redis.URL, redisCause(unpublished))
	}
	return set, nil
}

// scopeOf finds out whether target is a project or an account.
func scopeOf(ctx context.Context, cfg config.Config, target string, log *zap.Logger) (_ QuotaScope, err error) {
	if !strings.Contains(target, "@") {
		if err := knownProject(cfg, target); err != nil {
			return QuotaScope{}, &RefusedError{err}
		}
		return QuotaScope{Project: target}, nil
	}
	s, err := OpenStore(ctx, cfg, log)
	if errors.Is(err, ErrNoStore) {
		return QuotaScope{}, unknownAccount(cfg, target)
	}
	if err != nil {
		return QuotaScope{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	account, err := s.Account(ctx, target)
	if errors.Is(err, jobs.ErrNotFound) {
		return QuotaScope{}, unknownAccount(cfg, target)
	}
	if err != nil {
		return QuotaScope{}, err
	}
	if err := knownProject(cfg, account.Project); err != nil {
		return QuotaScope{}, fmt.Errorf("account %s: %w", account.Email, err)
	}
	return QuotaScope{Project: account.Project, Account: account.Email}, nil
}

// check finds the APIs to which a request applies, and refuses what the price
// lists do not allow.
func (r QuotaRequest) check(scope QuotaScope, project quota.Project) (apis []string, err error) {
	var lists []*quota.PriceList
	var names, limits []string
	for _, list := range project.Lists {
		names = append(names, fmt.Sprintf("%s (%s)", list.Name, list.API))
		if (r.API == "" || r.API == list.API) && (r.Prices == "" || r.Prices == list.Name) {
			lists = append(lists, list)
		}
	}
	if len(lists) == 0 {
		wanted := r.Prices
		if wanted == "" {
			wanted = "of " + r.API
		}
		return nil, refusef("project %s has no price list %s; it has %s", scope.Project, wanted, strings.Join(names, ", "))
	}
	for _, list := range lists {
		has := limitsOf(list)
		limits = append(limits, has...)
		if r.Limit == "" || slices.Contains(has, r.Limit) {
			apis = append(apis, list.API)
			if err := r.checkEdits(scope, list); err != nil {
				return nil, err
			}
		}
	}
	if len(apis) == 0 {
		slices.Sort(limits)
		return nil, refusef("no limit %q here; there are %s", r.Limit, strings.Join(slices.Compact(limits), ", "))
	}
	return apis, nil
}

// limitsOf names the limits of a list that settings may be for.
func limitsOf(list *quota.PriceList) []string {
	var limits []string
	for name := range list.Limits {
		limits = append(limits, name)
	}
	if list.API == "gmail" {
		limits = append(limits, quota.LimitUserBytes)
	}
	return limits
}

func (r QuotaRequest) checkEdits(scope QuotaScope, list *quota.PriceList) error {
	seen := map[string]bool{}
	for _, e := range r.Edits {
		if seen[e.name()] {
			return refusef("%s is named twice", e.name())
		}
		seen[e.name()] = true
		switch {
		case e.Lane == "" && scope.Account != "":
			return refusef("a mode is for a whole project: headroom quota set %s %s=...", scope.Project, keyMode)
		case e.Lane == "" && scope.Limit != "":
			return refusef("a mode is for all limits; leave out --limit")
		case e.Lane == "" || e.Unset:
			continue
		}
		c := quota.Change{User: scope.Account, Lane: e.Lane, Limit: scope.Limit, Key: e.Key, Value: e.To}
		if err := c.Validate(list); err != nil {
			return refusef("%s=%v: %w", e.name(), e.To, err)
		}
	}
	return nil
}

// openLedger makes a ledger for an operator's command. It asks Redis only when
// it is used.
func openLedger(cfg config.Config, projects map[string]quota.Project) (*quota.Ledger, func() error, error) {
	o, err := redis.ParseURL(cfg.Redis.URL.Reveal())
	if err != nil {
		// The error of the parser may quote the password.
		return nil, nil, fmt.Errorf("redis.url %s is not the URL of a Redis; its form is redis://USER:PASSWORD@HOST:PORT/DB", cfg.Redis.URL)
	}
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.DialerRetries = 1
	rdb := redis.NewClient(quota.ClientOptions(o))
	ledger, err := quota.NewLedger(quota.Options{Redis: rdb, Projects: projects, Scale: cfg.Scale, KeyPrefix: cfg.Redis.LedgerPrefix})
	if err != nil {
		return nil, nil, errors.Join(err, rdb.Close())
	}
	return ledger, rdb.Close, nil
}

// revisions asks Redis by which revisions the processes go.
func revisions(ctx context.Context, ledger *quota.Ledger, project string, apis []string) (map[string]uint32, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	known := map[string]uint32{}
	for _, api := range apis {
		live, err := ledger.Live(ctx, project, api)
		if err != nil {
			return known, err
		}
		known[api] = live.Revision
	}
	return known, nil
}

// publish tells the processes what holds now.
func publish(ctx context.Context, ledger *quota.Ledger, set QuotaSet) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	for _, a := range set.APIs {
		if a.Revision == 0 {
			continue
		}
		if _, err := ledger.Publish(ctx, set.Project, a.API, a.live); err != nil {
			return err
		}
	}
	return nil
}

// write makes the change in the store, for all APIs or none.
func (r QuotaRequest) write(ctx context.Context, cfg config.Config, ledger *quota.Ledger, scope QuotaScope, apis []string,
	known map[string]uint32, log *zap.Logger) (all []QuotaAPISet, err error) {
	s, err := store.Open(ctx, storeOptions(cfg, log))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	_, err = s.ChangeSettings(ctx, scope.Project, apis, whoami(), known, func(now store.Setting, next uint32) (*store.SettingChange, error) {
		a, err := r.edit(ledger, scope, now, next)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
		if !a.Changed {
			return nil, nil
		}
		text, err := json.Marshal(a.live)
		return &store.SettingChange{Change: a.text, Live: text}, err
	})
	return all, err
}

// edit makes the request's edits to what holds now. Settings that Redis has from
// another store, or from this one before a backup was restored, give way to those
// of this one even if the edits change nothing.
func (r QuotaRequest) edit(ledger *quota.Ledger, scope QuotaScope, now store.Setting, next uint32) (QuotaAPISet, error) {
	a := QuotaAPISet{API: now.API, Revision: now.Revision}
	live, err := liveOf(now)
	if err != nil {
		return a, err
	}
	var texts []string
	for _, e := range r.Edits {
		var v QuotaValue
		var text string
		if live, v, text, err = e.apply(ledger, a.API, scope, live); err != nil {
			return a, err
		}
		a.Values = append(a.Values, v)
		if text != "" {
			texts = append(texts, text)
		}
	}
	a.Closer = closer(live, r.Edits, scope)
	if next > now.Revision+1 {
		texts = append(texts, fmt.Sprintf("in place of revision %d, which only Redis knew", next-1))
	}
	if len(texts) > 0 {
		a.Changed, a.Revision, a.text = true, next, strings.Join(texts, ", ")
		live.Revision = next
		if err := ledger.CheckLive(scope.Project, a.API, live); err != nil {
			return a, &RefusedError{err}
		}
	}
	a.live = live
	return a, nil
}

// closer finds the settings that count before the edits where they fit.
func closer(live quota.Live, edits []QuotaEdit, scope QuotaScope) []string {
	var texts []string
	for _, c := range live.Changes {
		fits := (scope.Account == "" || c.User == scope.Account) && (scope.Limit == "" || c.Limit == scope.Limit || c.Limit == "")
		closer := c.User != scope.Account || c.Limit != "" && scope.Limit == ""
		if fits && closer && slices.ContainsFunc(edits, func(e QuotaEdit) bool { return e.Lane == c.Lane && e.Key == c.Key }) {
			texts = append(texts, c.String())
		}
	}
	return texts
}

// whoami is who runs the process: user and host.
func whoami() string {
	who, where := fmt.Sprintf("uid %d", os.Getuid()), "unknown host"
	if u, err := user.Current(); err == nil && u.Username != "" {
		who = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		where = host
	}
	return who + "@" + where
}
