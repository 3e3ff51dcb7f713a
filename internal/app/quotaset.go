package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"

	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/redisconn"
	"headroom/internal/store/sqlite"
	"headroom/quota"
)

// QuotaRequest is a change of the quota's settings that somebody asks for.
type QuotaRequest struct {
	Target string // a project's name, or an account's address
	API    string // with Prices empty too: all to which the change applies
	Prices string // the API of this price list
	Limit  string
	Edits  []QuotaEdit
	Who    string // asks, for the history; user and host of the process if empty
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

// SetQuota changes the quota's settings of a project or an account while
// processes run. It writes them to the store, and then publishes them: when it
// returns, the next decision of every process goes by them. A Redis that cannot be
// reached is no error, since processes publish what it lacks. The error is a
// [*RefusedError] when the request makes no sense.
func SetQuota(ctx context.Context, cfg config.Config, r QuotaRequest, log *zap.Logger) (set QuotaSet, err error) {
	redisconn.RouteLog(log)
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
		set.Unpublished = fmt.Sprintf("no Redis at %s: %v", cfg.Redis.URL, redisconn.Cause(unpublished))
	}
	return set, nil
}

// write makes the change in the store, for all APIs or none.
func (r QuotaRequest) write(ctx context.Context, cfg config.Config, ledger *quota.Ledger, scope QuotaScope, apis []string,
	known map[string]uint32, log *zap.Logger) (all []QuotaAPISet, err error) {
	s, err := makeStore(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	_, err = s.ChangeSettings(ctx, scope.Project, apis, cmp.Or(r.Who, whoami()), known, func(now sqlite.Setting, next uint32) (*sqlite.SettingChange, error) {
		a, err := r.edit(ledger, scope, now, next)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
		if !a.Changed {
			return nil, nil
		}
		text, err := json.Marshal(a.live)
		return &sqlite.SettingChange{Change: a.text, Live: text}, err
	})
	return all, err
}

// edit makes the request's edits to what holds now. Settings that Redis has from
// another store, or from this one before a backup was restored, give way to those
// of this one even if the edits change nothing.
func (r QuotaRequest) edit(ledger *quota.Ledger, scope QuotaScope, now sqlite.Setting, next uint32) (QuotaAPISet, error) {
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
