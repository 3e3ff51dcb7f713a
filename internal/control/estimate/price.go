package estimate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"headroom/jobs"
	"headroom/quota"
	"headroom/quota/price"
	"headroom/workers"
)

// A Step of a plan is calls of one kind.
type Step struct {
	For    string `json:"for"`
	Method string `json:"method"`
	Format string `json:"format,omitempty"`
	Calls  Figure `json:"calls"`
}

// Priced is what a plan takes by one price list.
type Priced struct {
	List string `json:"list"`
	Own  bool   `json:"own"` // the project pays by it
	// Verified reports that the costs of the plan's calls were seen on Google's own page.
	Verified bool   `json:"verified"`
	Units    Figure `json:"units"`

	DayUnits int64   `json:"day_units"` // of a project's day; 0: the list knows none
	DayShare float64 `json:"day_share"` // units over them

	Ceiling float64 `json:"ceiling_units"` // a minute, of lane backfill
	Seconds float64 `json:"seconds"`       // at that ceiling
	BoundBy string  `json:"bound_by"`      // the limit that makes it take so long

	list *price.List
}

// plan is the calls of the backfill that cost least by a price list.
func (s *survey) plan(list *price.List) []Step {
	fetch := s.fetch()
	listed := Figure{pages(s.messages.Value), pages(s.messages.Least), pages(s.messages.Most), "500 ids a page"}
	steps := []Step{
		{"the history id to sync from, and a count", "getProfile", "", exactly(1, "")},
		{"the names of labels", "labels.list", "", exactly(1, "")},
		{"ids", "messages.list", "", listed},
	}
	each := fetch
	each.How = "one a message"
	switch s.filter.Format {
	case jobs.FormatMetadataFirst:
		steps = append(steps, s.wholes(list, "labels and headers of all messages")...)
		steps = append(steps, Step{"raw messages", "messages.get", "raw", each.less(s.large, each.How)})
	case jobs.FormatFull:
		steps = append(steps, s.wholes(list, "messages as Gmail parses them")...)
		if s.attached.Most > 0 {
			steps = append(steps, Step{"the content of attachments", "messages.attachments.get", "", s.attached})
		}
	default:
		steps = append(steps, Step{"raw messages", "messages.get", "raw", each})
		if s.large.Most > 0 {
			steps = append(steps, Step{"labels and headers of messages that are too large", "messages.get", "metadata", s.large})
		}
	}
	return steps
}

// wholes are the calls that bring messages by threads, or by themselves where a
// thread costs more.
func (s *survey) wholes(list *price.List, what string) []Step {
	format := workers.GetFormat(s.filter.Format)
	threads, singles := s.grouped(workers.ThreadsFrom(list, s.filter.Format))
	steps := []Step{{what, "messages.get", format, singles}}
	if threads.Most > 0 {
		steps = append(steps, Step{what + ", by whole threads", "threads.get", format, threads})
	}
	return steps
}

// why explains why no other plan is cheaper.
func (s *survey) why(list *price.List) string {
	text := whyThisPlan(list, s.filter.Format)
	if s.filter.ByThread() && list != nil {
		text += fmt.Sprintf(" The mailbox has %.1f messages a thread.", float64(s.all)/float64(max(1, s.threads)))
	}
	return text
}

// prices prices the backfill by every price list of Gmail's, the project's own
// first.
func (s *survey) prices(e Estimate) ([]Priced, error) {
	project := s.Projects[s.account.Project]
	var all []Priced
	for _, list := range project.Lists {
		if list.API == "gmail" {
			all = append(all, Priced{List: list.Name, Own: true, list: list})
		}
	}
	for _, name := range price.Names() {
		list, err := price.Load(name)
		if err != nil {
			return nil, err
		}
		if list.API == "gmail" && !slices.ContainsFunc(all, func(p Priced) bool { return p.List == name }) {
			all = append(all, Priced{List: name, list: list})
		}
	}
	for i := range all {
		if err := s.price(&all[i], project, e); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s *survey) price(p *Priced, project quota.Project, e Estimate) error {
	p.Verified = true
	for _, step := range s.plan(p.list) {
		method := "gmail.users." + step.Method
		cost, _ := p.list.Cost(method, step.Format)
		p.Units.add(cost, step.Calls)
		p.Verified = p.Verified && p.list.Costs[method].Verified
	}
	p.Units.How = "calls of the plan at the list's costs"
	if p.DayUnits = p.list.Billing[price.ProjectDay].Units; p.DayUnits > 0 {
		p.DayShare = float64(p.Units.Value) / float64(p.DayUnits)
	}
	return s.time(p, project, e.Bytes)
}

// day is a day of Google's.
const day = 24 * time.Hour

// time sets how long the units take if nobody else spends any: at the ceiling of
// the user's limits and the project's, the day's budget, and a user's bytes of a day.
func (s *survey) time(p *Priced, project quota.Project, bytes *Figure) error {
	caller := quota.Caller{Project: s.account.Project, User: s.account.QuotaUser(), Lane: quota.Backfill}
	takes := func(limit string, amount int64, per time.Duration, rate float64) {
		seconds := float64(amount) / rate * per.Seconds() / float64(max(1, s.Scale))
		if seconds > p.Seconds {
			p.Seconds, p.BoundBy = seconds, limit
		}
	}
	for name, limit := range p.list.Limits {
		rule, err := s.Ledger.Rule(caller, "gmail", name)
		if err != nil {
			return err
		}
		ceiling := float64(limit.Units) * cmp.Or(rule.Ceiling, 1)
		if name == price.UserMinute {
			p.Ceiling = ceiling
		}
		takes(name, p.Units.Value, limit.Period, ceiling)
	}
	if budget := budgetFor(p, project); budget > 0 && p.Units.Value > budget {
		takes(price.ProjectDay, p.Units.Value, day, float64(budget))
	}
	_, most, err := s.Ledger.Caps(caller, "gmail")
	if err == nil && bytes != nil && most > 0 && bytes.Value > most {
		takes(quota.LimitUserBytes, bytes.Value, day, float64(most))
	}
	return err
}

// budgetFor is the units of a day after which the background waits for the next; 0:
// it does not.
func budgetFor(p *Priced, project quota.Project) int64 {
	for _, b := range project.Budgets {
		if b.API == "gmail" && b.AtEnd != "" && b.AtEnd != price.AtEndPause {
			return 0
		}
		if b.API == "gmail" && p.Own {
			return b.Units
		}
	}
	return p.DayUnits
}
