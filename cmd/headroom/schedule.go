package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headroom/internal/control"
	"headroom/internal/term"
	"headroom/jobs"
)

// scopeFlags adds the flags that choose the accounts of a schedule.
func scopeFlags(cmd *cobra.Command) *jobs.ScheduleScope {
	scope := &jobs.ScheduleScope{}
	cmd.Flags().StringVar(&scope.Account, "account", "", "only those of the account with this `ADDRESS`")
	cmd.Flags().StringVar(&scope.Tenant, "tenant", "", "only those of the accounts of the tenant with this `NAME`")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if scope.Account != "" && scope.Tenant != "" {
			return usagef("name an --account or a --tenant, not both")
		}
		return nil
	}
	return scope
}

var scheduleTable = term.Table[control.ScheduleLine]{
	Columns: []string{"SCHEDULE", "SPEC", "ZONE", "SETTINGS OF", "ACCOUNTS", "NEXT", "LAST SLOT", "LAST RESULT", "LAG", "MISSED", "PAUSED"},
	Cells: func(l control.ScheduleLine) []any {
		return []any{l.Schedule, l.Spec, l.Zone, l.SettingsOf, l.Accounts, term.Time(l.Next),
			term.Time(l.LastSlot), resultsCell(l), lagCell(l), l.Missed, pausedCell(l)}
	},
	Empty: "there are no accounts that a schedule could run for; add one with: headroom account add EMAIL --project PROJECT",
}

func newScheduleList(g *globals) *cobra.Command {
	var scope *jobs.ScheduleScope
	cmd := g.command("list [--account ADDRESS | --tenant NAME]", cobra.NoArgs, func(ctx context.Context, cmd *cobra.Command, c *control.Control, _ []string) error {
		all, err := c.Schedules(ctx, *scope)
		if err != nil {
			return err
		}
		return printSchedules(cmd.OutOrStdout(), g.json, all)
	})
	scope = scopeFlags(cmd)
	return cmd
}

// printSchedules prints the table and below it the last errors, which are too long for
// a column.
func printSchedules(out io.Writer, asJSON bool, all []control.ScheduleLine) error {
	if err := scheduleTable.Print(out, asJSON, all); err != nil || asJSON {
		return err
	}
	for _, l := range all {
		if l.LastError != "" {
			fmt.Fprintf(out, "last error of %s (settings of %s): %s\n", l.Schedule, term.Clean(l.SettingsOf), term.Clean(l.LastError))
		}
	}
	return nil
}

// resultsCell is a result, or how many accounts had which.
func resultsCell(l control.ScheduleLine) string {
	var parts []string
	for _, result := range slices.Sorted(maps.Keys(l.Results)) {
		if len(l.Results) == 1 {
			parts = append(parts, result)
		} else {
			parts = append(parts, fmt.Sprintf("%d %s", l.Results[result], result))
		}
	}
	return strings.Join(parts, ", ")
}

func lagCell(l control.ScheduleLine) string {
	if l.LagSeconds == 0 {
		return term.None
	}
	return time.Duration(l.LagSeconds * float64(time.Second)).Round(time.Second).String()
}

func pausedCell(l control.ScheduleLine) string {
	switch l.Paused {
	case 0:
		return term.None
	case l.Accounts:
		return "by " + strings.Join(l.PausedBy, ", ")
	}
	return fmt.Sprintf("%d by %s", l.Paused, strings.Join(l.PausedBy, ", "))
}

var runTable = term.Table[control.ScheduledRun]{
	Columns: []string{"DUE", "SCHEDULE", "SLOT", "ZONE", "SPREAD", "PAUSED"},
	Cells: func(r control.ScheduledRun) []any {
		paused := term.None
		if r.Paused {
			paused = "yes"
		}
		zone, _ := r.Slot.Zone()
		return []any{term.Time(r.Due), r.Schedule, term.TimeIn(r.Slot, r.Slot.Location()), zone, time.Duration(r.Spread * float64(time.Second)), paused}
	},
}

// maxNext bounds how many coming runs are shown.
const maxNext = 1000

func newScheduleNext(g *globals) *cobra.Command {
	var account string
	var n int
	cmd := g.command("next [SCHEDULE] [--account ADDRESS] [-n N]", cobra.MaximumNArgs(1), func(ctx context.Context, cmd *cobra.Command, c *control.Control, args []string) (err error) {
		var schedule jobs.Schedule
		if len(args) > 0 {
			if schedule, err = jobs.ParseSchedule(args[0]); err != nil {
				return usage(err)
			}
		}
		if schedule == "" && account == "" {
			return usagef("name a schedule or an --account; usage: %s", cmd.UseLine())
		}
		if n < 1 || n > maxNext {
			return usagef("-n %d is not from 1 to %d", n, maxNext)
		}
		all, err := c.NextRuns(ctx, schedule, account, n)
		if err != nil {
			return err
		}
		table := runTable
		table.Empty = "none: the settings have no specification for " + cmp.Or(string(schedule), "any schedule of "+account)
		return table.Print(cmd.OutOrStdout(), g.json, all)
	})
	cmd.Flags().StringVar(&account, "account", "", "those of the account with this `ADDRESS`")
	cmd.Flags().IntVarP(&n, "number", "n", 10, "how many")
	return cmd
}

func newScheduleRun(g *globals) *cobra.Command {
	return steerSchedules(g, "run", (*control.Control).RunSchedule, func(r control.ScheduleRun) string {
		if r.Account != "" {
			return fmt.Sprintf("asked for %s of %s", r.Schedule, r.Account)
		}
		return fmt.Sprintf("asked for %s of %d of %d accounts", r.Schedule, r.Asked, r.Accounts)
	})
}

func newSchedulePause(g *globals) *cobra.Command {
	return steerSchedules(g, "pause", (*control.Control).PauseSchedule, func(p control.SchedulePausing) string {
		return pausingText(p, "paused", "was paused already:")
	})
}

func newScheduleResume(g *globals) *cobra.Command {
	return steerSchedules(g, "resume", (*control.Control).ResumeSchedule, func(p control.SchedulePausing) string {
		text := pausingText(p, "resumed", "was not paused:")
		if len(p.By) > 0 {
			text += fmt.Sprintf("\nstill paused by %s; resume it for the same, or see schedules.%s.pause in the settings", strings.Join(p.By, ", "), p.Schedule)
		}
		return text
	})
}

func pausingText(p control.SchedulePausing, changed, already string) string {
	if !p.Changed {
		changed = already
	}
	return fmt.Sprintf("%s %s of %s", changed, p.Schedule, p.ScheduleScope)
}

// steerSchedules makes a command that does something with a schedule.
func steerSchedules[T any](g *globals, verb string, do func(*control.Control, context.Context, jobs.Schedule, jobs.ScheduleScope) (T, error), line func(T) string) *cobra.Command {
	var scope *jobs.ScheduleScope
	cmd := show(g, verb+" SCHEDULE [--account ADDRESS | --tenant NAME]", cobra.ExactArgs(1), func(ctx context.Context, c *control.Control, args []string) (v T, err error) {
		schedule, err := jobs.ParseSchedule(args[0])
		if err != nil {
			return v, usage(err)
		}
		return do(c, ctx, schedule, *scope)
	}, text(line))
	scope = scopeFlags(cmd)
	return cmd
}
