package control

import (
	"context"
	"slices"
	"strings"
	"time"

	"headroom/config"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
	"headroom/scheduler"
)

// Schedules lists the schedules as they hold for the accounts of a scope,
// those with the same settings together.
func (c *Control) Schedules(ctx context.Context, scope jobs.ScheduleScope) ([]ScheduleLine, error) {
	s, snapshot, err := c.scoped(ctx, &scope)
	if err != nil {
		return nil, err
	}
	all, err := scheduler.Statuses(snapshot, TimingFunc(c.cfg), time.Now())
	if err != nil {
		return nil, err
	}
	work, err := workOf(ctx, s, scope.Account)
	if err != nil {
		return nil, err
	}
	type group struct {
		schedule jobs.Schedule
		of       string
	}
	lines := map[group]*ScheduleLine{}
	for _, one := range all {
		g := group{one.Schedule, settingsOf(c.cfg, one)}
		if lines[g] == nil {
			set := c.cfg.Schedule(one.Schedule, one.Account.Tenant, one.Account.Email)
			lines[g] = &ScheduleLine{Schedule: g.schedule, SettingsOf: g.of, Spec: set.Spec, Zone: set.Zone, Results: map[string]int{}}
		}
		addStatus(lines[g], one, work)
	}
	return inOrder(lines), nil
}

func inOrder[K comparable](lines map[K]*ScheduleLine) []ScheduleLine {
	all := []ScheduleLine{}
	for _, line := range lines {
		slices.Sort(line.PausedBy)
		all = append(all, *line)
	}
	slices.SortFunc(all, func(a, b ScheduleLine) int {
		if by := slices.Index(jobs.Schedules, a.Schedule) - slices.Index(jobs.Schedules, b.Schedule); by != 0 {
			return by
		}
		return strings.Compare(rankedSource(a.SettingsOf), rankedSource(b.SettingsOf))
	})
	return all
}

// rankedSource puts what holds for many before what holds for one.
func rankedSource(of string) string {
	kind, _, _ := strings.Cut(of, " ")
	return string(rune('0'+slices.Index([]string{"defaults", "all", "tenant", "account"}, kind))) + of
}

func settingsOf(cfg config.Config, s scheduler.ScheduleStatus) string {
	of := cfg.ScheduleSource(s.Schedule, s.Account.Tenant, s.Account.Email)
	switch of {
	case "tenant":
		of += " " + s.Account.Tenant
	case "account":
		of += " " + s.Account.Email
	}
	return of
}

// addStatus adds an account to the line that it belongs to.
func addStatus(line *ScheduleLine, s scheduler.ScheduleStatus, work scheduleWork) {
	line.Accounts++
	if !s.Next.IsZero() && (line.Next.IsZero() || s.Next.Before(line.Next)) {
		line.Next = s.Next
	}
	line.LagSeconds = max(line.LagSeconds, s.Lag.Round(time.Millisecond).Seconds())
	if s.Slot.Runs > 0 {
		line.LastSlot, line.LastRun = latest(line.LastSlot, s.Slot.Slot), latest(line.LastRun, s.Slot.RanAt)
	}
	line.Runs += s.Slot.Runs
	line.CatchUps += s.Slot.CatchUps
	line.Missed += s.Slot.Missed
	result, problem := work.result(s)
	line.Results[result]++
	if line.LastError == "" {
		line.LastError = problem
	}
	if s.Paused() {
		line.Paused++
	}
	for _, by := range pausedBy(s) {
		if !slices.Contains(line.PausedBy, by) {
			line.PausedBy = append(line.PausedBy, by)
		}
	}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// pausedBy names what pauses a schedule for an account.
func pausedBy(s scheduler.ScheduleStatus) (by []string) {
	if s.Timing.Paused {
		by = append(by, "settings")
	}
	for _, p := range s.Pauses {
		by = append(by, jobs.ScheduleScope{Account: p.Account, Tenant: p.Tenant}.String())
	}
	return by
}

// scheduleWork is the state of the work that schedules ask for.
type scheduleWork map[jobs.Schedule]map[string]jobs.ScheduleOutcome

func workOf(ctx context.Context, s *sqlite.Store, account string) (scheduleWork, error) {
	all, err := s.ScheduleOutcomes(ctx, account)
	if err != nil {
		return nil, err
	}
	work := scheduleWork{}
	for _, o := range all {
		if work[o.Schedule] == nil {
			work[o.Schedule] = map[string]jobs.ScheduleOutcome{}
		}
		work[o.Schedule][o.Account] = o
	}
	return work, nil
}

// result is the result of an account's last run: the state of the work that it asked
// for, or that the work has not begun.
func (w scheduleWork) result(s scheduler.ScheduleStatus) (result, problem string) {
	switch {
	case s.Slot.Runs == 0:
		return "never", ""
	case s.Slot.Result == jobs.SlotNothing:
		return string(jobs.SlotNothing), ""
	}
	of := []jobs.Schedule{s.Schedule}
	if s.Schedule == jobs.ScheduleReconcile {
		of = []jobs.Schedule{jobs.ScheduleMail, jobs.ScheduleCalendar}
	}
	var work []jobs.ScheduleOutcome
	for _, schedule := range of {
		if o, ok := w[schedule][s.Account.Email]; ok {
			work = append(work, o)
		}
	}
	last := jobs.LastRun(s.Schedule, work, s.Slot.RanAt)
	return string(last.State), last.Error
}

// TimingFunc returns when schedules run, by the settings.
func TimingFunc(cfg config.Config) func(schedule jobs.Schedule, tenant, account string) scheduler.Timing {
	return func(s jobs.Schedule, tenant, account string) scheduler.Timing {
		set := cfg.Schedule(s, tenant, account)
		t := scheduler.Timing{Spec: set.Spec, Zone: set.Zone, Spread: -1, CatchUp: set.CatchUp == config.CatchUps[0], Paused: *set.Pause}
		if set.Spec == config.NoSchedule {
			t.Spec = ""
		}
		if set.Spread != nil {
			t.Spread = *set.Spread
		}
		return t
	}
}
