// Package quotaview reads for operators how full the quota of an account or a project
// is, what was decided about it lately, and who waits for what. It charges nothing.
package quotaview

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"headroom/internal/store/sqlite"
	"headroom/jobs"
	"headroom/quota"
	"headroom/quota/price"
)

// A Reader reads the quota of one account or project. All fields but Store are
// required.
type Reader struct {
	Store   *sqlite.Store // nil while nothing has been stored
	Ledger  *quota.Ledger
	Lists   []*price.List // of the project
	Project string
	Account string // "": the whole project
	User    string // the mailbox for which the account's calls are counted
}

// IsAccount reports whether r reads the quota of an account, not of a project.
func (r *Reader) IsAccount() bool { return r.Account != "" }

// QuotaState is the quota of an account or a project at a moment.
type QuotaState struct {
	At      time.Time    `json:"at"` // on the clock of Redis
	Account string       `json:"account,omitempty"`
	Project string       `json:"project"`
	APIs    []APIQuota   `json:"apis"`
	Jobs    []WaitingJob `json:"jobs"` // that wait
}

// APIQuota is the quota of one API.
type APIQuota struct {
	API     string        `json:"api"`
	Prices  string        `json:"prices"` // the price list
	Windows []QuotaWindow `json:"windows"`
	Day     *QuotaDay     `json:"day,omitempty"` // nil without a budget
	User    *ScopeQuota   `json:"user,omitempty"`
	OfAll   ScopeQuota    `json:"of_project"`
	Flight  *FlightQuota  `json:"in_flight,omitempty"`
	Bytes   *BytesQuota   `json:"bytes,omitempty"`
	// Features are parts of Google's service that a refusal has closed to the account.
	Features []quota.Cooldown `json:"closed_features,omitempty"`
	Settings quota.Live       `json:"settings"` // those that were changed live
	Waiting  []quota.Note     `json:"waiting"`  // calls that were refused within seconds, or wait in place
	Spenders *QuotaSpenders   `json:"spenders,omitempty"`
}

// QuotaWindow is one limit, and how full it is.
type QuotaWindow struct {
	Limit   string               `json:"limit"`
	Per     string               `json:"per"`   // "user" or "project"
	Units   int64                `json:"units"` // Google's limit
	Used    int64                `json:"used"`
	Spent   map[quota.Lane]int64 `json:"spent"`   // of what is used
	Unknown int64                `json:"unknown"` // used by nobody knows which lane
	Lanes   []LaneQuota          `json:"lanes"`
}

// LaneQuota is how far up a limit a lane may fill it now.
type LaneQuota struct {
	Lane    quota.Lane `json:"lane"`
	Ceiling int64      `json:"ceiling"`
	Left    int64      `json:"left"`   // 0 while the lane is closed
	Source  string     `json:"source"` // which setting or event decides it
}

// QuotaDay is a project's budget.
type QuotaDay struct {
	Used    int64     `json:"used"`
	Budget  int64     `json:"budget"`
	Allowed int64     `json:"allowed"` // how far backfills may have spent it by now
	Pauses  bool      `json:"pauses"`  // the background, once the budget is spent
	Ends    time.Time `json:"ends"`
}

// ScopeQuota is what holds for a whole user or project.
type ScopeQuota struct {
	ClosedUntil time.Time `json:"closed_until,omitzero"`
	// Cooldown is what Google refused and said; nil while open.
	Cooldown     *quota.Cooldown `json:"cooldown,omitempty"`
	UnknownUntil time.Time       `json:"unknown_until,omitzero"`
	Share        float64         `json:"share"` // of the limits that may be used since Google refused; 1: all
	Lent         float64         `json:"lent"`  // of the limits, given up by the background for interactive traffic
}

// FlightQuota is how many calls are in flight, and may be.
type FlightQuota struct {
	quota.FlightState
	Caps map[quota.Lane]int64 `json:"caps"`
}

// BytesQuota is what a user downloaded in the last day, and may.
type BytesQuota struct {
	Used int64                `json:"used"`
	Caps map[quota.Lane]int64 `json:"caps"`
}

// QuotaSpenders are the accounts of a project that spent lately.
type QuotaSpenders struct {
	Accounts int64           `json:"accounts"`
	Top      []quota.Spender `json:"top"`
}

// WaitingJob is a job that waits.
type WaitingJob struct {
	ID      string    `json:"id"`
	Account string    `json:"account"`
	For     string    `json:"for"`
	Until   time.Time `json:"until"`
}

// topSpenders is how many accounts are shown of a project.
const topSpenders = 5

// State reads what there is now.
func (r *Reader) State(ctx context.Context) (QuotaState, error) {
	s := QuotaState{Account: r.Account, Project: r.Project}
	for _, list := range r.Lists {
		a, at, err := r.api(ctx, list)
		if err != nil {
			return QuotaState{}, err
		}
		s.At, s.APIs = at, append(s.APIs, a)
	}
	var err error
	s.Jobs, err = r.waitingJobs(ctx)
	return s, err
}

// waitingJobs are the jobs that wait, those of the account if one is asked about.
func (r *Reader) waitingJobs(ctx context.Context) ([]WaitingJob, error) {
	waiting := []WaitingJob{}
	if r.Store == nil {
		return waiting, nil
	}
	live, err := r.Store.LiveJobs(ctx)
	for _, j := range live {
		mine := j.Account == r.Account || r.Account == "" && j.Project == r.Project
		switch {
		case !mine:
		case j.State == jobs.Waiting:
			waiting = append(waiting, WaitingJob{j.ID, j.Account, j.WaitingFor, j.WaitUntil})
		case j.Admission == jobs.NotAdmitted:
			waiting = append(waiting, WaitingJob{ID: j.ID, Account: j.Account, For: "admission among the project's backfills"})
		}
	}
	return waiting, err
}

func (r *Reader) api(ctx context.Context, list *price.List) (a APIQuota, at time.Time, err error) {
	a = APIQuota{API: list.API, Prices: list.Name, Waiting: []quota.Note{}}
	c := quota.Caller{Project: r.Project, User: r.User}
	looks := map[quota.Lane]quota.Decision{}
	for _, c.Lane = range quota.Lanes {
		if looks[c.Lane], err = r.Ledger.Peek(ctx, c, list.API); err != nil {
			return a, at, err
		}
	}
	now := looks[quota.Interactive]
	at = now.Charge.At
	if a.Windows, a.Day, err = r.windows(ctx, list, looks); err != nil {
		return a, at, err
	}
	a.OfAll = scopeQuota(now.Project)
	if a.Settings, err = r.Ledger.Live(ctx, r.Project, list.API); err != nil {
		return a, at, err
	}
	if r.IsAccount() {
		user := scopeQuota(now.User)
		a.User = &user
		return a, at, r.addUser(ctx, &a, at)
	}
	n, top, err := r.Ledger.Spenders(ctx, r.Project, list.API, at, topSpenders)
	a.Spenders = &QuotaSpenders{Accounts: n, Top: append([]quota.Spender{}, top...)}
	return a, at, err
}

func scopeQuota(s quota.ScopeState) ScopeQuota {
	q := ScopeQuota{ClosedUntil: s.ClosedUntil, UnknownUntil: s.UnknownUntil, Share: s.Share, Lent: s.Lent}
	if !s.ClosedUntil.IsZero() {
		q.Cooldown = &s.Cooldown
	}
	if q.Share == 0 {
		q.Share = 1
	}
	return q
}

// windows turns what the lanes see into what a person can read.
func (r *Reader) windows(ctx context.Context, list *price.List, looks map[quota.Lane]quota.Decision) ([]QuotaWindow, *QuotaDay, error) {
	now := looks[quota.Interactive]
	c := now.Charge.Caller
	spent, err := r.Ledger.Spent(ctx, c, list.API, now.Charge.At)
	if err != nil {
		return nil, nil, err
	}
	var all []QuotaWindow
	var day *QuotaDay
	for i, u := range now.Usage {
		if u.Limit == price.ProjectDay {
			allowed := looks[quota.Backfill].Usage[i].Ceiling
			day = &QuotaDay{Used: u.Used, Budget: u.Units, Allowed: min(allowed, u.Units), Pauses: allowed <= u.Units, Ends: quota.DayEnds(now.Charge.At)}
			continue
		}
		w := QuotaWindow{Limit: u.Limit, Per: list.Limits[u.Limit].Per, Units: u.Units, Used: u.Used}
		if w.Per == "user" && !r.IsAccount() {
			continue
		}
		w.Spent, w.Unknown = attribute(u.Used, spent[u.Limit])
		for _, lane := range quota.Lanes {
			c.Lane = lane
			rule, err := r.Ledger.Rule(c, list.API, u.Limit)
			if err != nil {
				return nil, nil, err
			}
			ceiling := looks[lane].Usage[i].Ceiling
			scope := now.Project
			if w.Per == "user" {
				scope = now.User
			}
			left := max(0, ceiling-u.Used)
			if closed(now, lane) {
				left = 0
			}
			text := source(rule, ceiling, u.Units, scope)
			if now.Project.UnknownUntil.After(now.Charge.At) {
				text = "Redis lost its data: " + lostSource(lane)
			}
			if days := looks[lane].Usage; len(days) > 0 && days[len(days)-1].Limit == price.ProjectDay {
				left = min(left, max(0, days[len(days)-1].Ceiling-days[len(days)-1].Used))
			}
			w.Lanes = append(w.Lanes, LaneQuota{lane, ceiling, left, text})
		}
		all = append(all, w)
	}
	slices.SortStableFunc(all, func(a, b QuotaWindow) int { // the user's first
		return cmp.Compare(b.Per, a.Per)
	})
	return all, day, nil
}

// lostSource is what decides about a lane while the spent units are unknown.
func lostSource(lane quota.Lane) string {
	if lane == quota.Interactive {
		return "what the background's ceilings leave, less what was spent since"
	}
	return "waits until what was spent is known again"
}

// closed reports whether a lane can spend nothing now, however much is free.
func closed(now quota.Decision, lane quota.Lane) bool {
	at := now.Charge.At
	return now.Project.ClosedUntil.After(at) || now.User.ClosedUntil.After(at) ||
		lane != quota.Interactive && now.Project.UnknownUntil.After(at)
}

// attribute splits what is used by lane. The journal may be behind, or ahead by
// what was given back: together the parts are what is used.
func attribute(used int64, spent map[quota.Lane]int64) (parts map[quota.Lane]int64, unknown int64) {
	var sum int64
	for _, units := range spent {
		sum += max(0, units)
	}
	parts = map[quota.Lane]int64{}
	for _, lane := range quota.Lanes {
		units := max(0, spent[lane])
		if sum > used {
			units = units * used / sum
		}
		parts[lane] = units
	}
	for _, units := range parts {
		used -= units
	}
	return parts, used
}

// source is which setting decides a ceiling, and what has lowered it since.
func source(rule quota.LaneRule, ceiling, units int64, s quota.ScopeState) string {
	text := rule.Source
	if ceiling >= int64(rule.Ceiling*float64(units)) {
		return text
	}
	if s.Share > 0 && s.Share < 1 {
		text = fmt.Sprintf("Google refused: %.0f %% of %s, recovering", 100*s.Share, text)
	}
	if s.Lent > 0 {
		text += fmt.Sprintf(", adaptive: gives %.0f %% to people", 100*s.Lent)
	}
	return text
}

// addUser adds what only an account has.
func (r *Reader) addUser(ctx context.Context, a *APIQuota, now time.Time) error {
	c := quota.Caller{Project: r.Project, User: r.User, Lane: quota.Interactive}
	state, err := r.Ledger.InFlight(ctx, c.Project, c.User, a.API)
	if err != nil {
		return err
	}
	if a.Features, err = r.Ledger.ClosedFeatures(ctx, c, a.API); err != nil {
		return err
	}
	a.Flight = &FlightQuota{state, map[quota.Lane]int64{}}
	bytes := BytesQuota{state.Bytes, map[quota.Lane]int64{}}
	for _, c.Lane = range quota.Lanes {
		calls, most, err := r.Ledger.Caps(c, a.API)
		if err != nil {
			return err
		}
		a.Flight.Caps[c.Lane] = calls
		if most > 0 {
			bytes.Caps[c.Lane] = most
			a.Bytes = &bytes
		}
	}
	notes, err := r.Ledger.Notes(ctx, c.Project, c.User, a.API, now)
	for _, n := range notes {
		if n.Kind == quota.NoteRefused && (n.Waits && n.Until.After(now) || now.Sub(n.Last) < waitsFor) {
			a.Waiting = append(a.Waiting, n)
		}
	}
	return err
}

// waitsFor is for how long calls that were refused count as waiting: those of a
// paced lane are refused for moments only, again and again.
const waitsFor = 3 * time.Second
