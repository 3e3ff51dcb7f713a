package control

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
	// Unpublished is the reason why Redis does not have the settings yet; "": it has them.
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
// reached is no error, since processes publish what it lacks. The error is of kind
// [Refused] if the request makes no sense.
func (c *Control) SetQuota(ctx context.Context, r QuotaRequest) (set QuotaSet, err error) {
	projects, err := c.projects()
	if err != nil {
		return QuotaSet{}, err
	}
	scope, err := c.scopeOf(ctx, r.Target)
	if err != nil {
		return QuotaSet{}, err
	}
	scope.Limit, scope.mode = r.Limit, projects[scope.Project].Mode
	apis, err := r.check(scope, projects[scope.Project])
	if err != nil {
		return QuotaSet{}, err
	}
	ledger, err := c.ledger()
	if err != nil {
		return QuotaSet{}, err
	}
	set = QuotaSet{QuotaScope: scope}
	known, unpublished := revisions(ctx, ledger, scope.Project, apis)
	if set.APIs, err = c.write(ctx, r, ledger, scope, apis, known); err != nil {
		return QuotaSet{}, err
	}
	if unpublished == nil {
		unpublished = publish(ctx, ledger, set)
	}
	if unpublished != nil {
		set.Unpublished = fmt.Sprintf("no Redis at %s: %v", c.cfg.Redis.URL, redisconn.Cause(unpublished))
	}
	return set, nil
}

// write makes the change in the store, for all APIs or none.
func (c *Control) write(ctx context.Context, r QuotaRequest, ledger *quota.Ledger, scope QuotaScope, apis []string, known map[string]uint32) (all []QuotaAPISet, err error) {
	s, err := c.newStore(ctx)
	if err != nil {
		return nil, err
	}
	_, err = s.ChangeSettings(ctx, scope.Project, apis, cmp.Or(r.Who, Whoami()), known, func(now sqlite.Setting, next uint32) (*sqlite.SettingChange, error) {
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

// revisions asks Redis by which revisions the processes go.
func revisions(ctx context.Context, ledger *quota.Ledger, project string, apis []string) (map[string]uint32, error) {
	ctx, cancel := context.WithTimeout(ctx, redisconn.Timeout)
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

// publish makes the processes go by what holds now.
func publish(ctx context.Context, ledger *quota.Ledger, set QuotaSet) error {
	ctx, cancel := context.WithTimeout(ctx, redisconn.Timeout)
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

// edit makes the request's edits to what holds now. Settings that Redis has from
// another store, or from this one before a backup was restored, give way to those
// of this one even if the edits change nothing.
func (r QuotaRequest) edit(ledger *quota.Ledger, scope QuotaScope, now sqlite.Setting, next uint32) (QuotaAPISet, error) {
	a := QuotaAPISet{API: now.API, Revision: now.Revision}
	live, err := LiveOf(now)
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
			return a, &Error{Kind: Refused, Err: err}
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

// Whoami is who runs the process: user and host.
func Whoami() string {
	who, where := fmt.Sprintf("uid %d", os.Getuid()), "unknown host"
	if u, err := user.Current(); err == nil && u.Username != "" {
		who = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		where = host
	}
	return who + "@" + where
}

// Setting is a change of the quota's settings of one API, and what held after it.
type Setting = sqlite.Setting

// QuotaHistory returns what was ever set of a project's quota settings, or of an
// account's, the oldest first. The error is of kind [Refused] if there is no
// such project.
func (c *Control) QuotaHistory(ctx context.Context, target string) (history []Setting, err error) {
	scope, err := c.scopeOf(ctx, target)
	if err != nil {
		return nil, err
	}
	s, err := c.store(ctx)
	if errors.Is(err, ErrNoStore) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := s.SettingHistory(ctx, scope.Project)
	if err != nil || scope.Account == "" {
		return all, err
	}
	before := map[string][]quota.Change{} // the account's, by API
	for _, row := range all {
		live, err := LiveOf(row)
		if err != nil {
			return nil, err
		}
		own := slices.DeleteFunc(live.Changes, func(c quota.Change) bool { return c.User != scope.Account })
		if !sameChanges(before[row.API], own) {
			history = append(history, row)
		}
		before[row.API] = own
	}
	return history, nil
}

// LiveOf reads what the store keeps of live settings. Nothing set is the zero Live.
func LiveOf(s sqlite.Setting) (quota.Live, error) {
	var live quota.Live
	if s.Revision == 0 {
		return live, nil
	}
	if err := json.Unmarshal(s.Live, &live); err != nil {
		return quota.Live{}, fmt.Errorf("quota settings of %s, %s, revision %d in the store: %w", s.Project, s.API, s.Revision, err)
	}
	live.Revision = s.Revision
	return live, nil
}
