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

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/store/sqlite"
	"headroom/internal/term"
	"headroom/jobs"
)

func newSchedule(g *globals) *cobra.Command {
	return group(&cobra.Command{
		Use:     "schedule",
		Short:   "See, run and pause what is done again and again",
		Example: "  headroom schedule list",
	}, newScheduleList(g), newScheduleNext(g), newScheduleRun(g), newSchedulePause(g), newScheduleResume(g))
}

// scopeFlags adds the flags that say whose schedules are meant.
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

// withSchedules runs use with the settings and the store.
func withSchedules(cmd *cobra.Command, g *globals, use func(context.Context, config.Config, *sqlite.Store) error) error {
	return withStore(cmd, g, func(ctx context.Context, s *sqlite.Store) error {
		cfg, err := g.load()
		if err != nil {
			return err
		}
		return use(ctx, cfg, s)
	})
}

func newScheduleList(g *globals) *cobra.Command {
	var scope *jobs.ScheduleScope
	cmd := &cobra.Command{
		Use:   "list [--account ADDRESS | --tenant NAME]",
		Short: "List schedules with their next and last runs",
		Long: `List the schedules, a line for all accounts whose settings are the same: the
specification, whose settings these are, when the next run of any of the accounts
is due, which slot (the moment that the specification names) ran last, what the
accounts' last runs came to, for how long the run has been due that has waited
longest, how many slots never had a run, and what pauses it. A result is the state
of the work that the run asked for; nothing, where there was none to ask for; never,
where there was no run yet. Moments are in the local time zone, with --json in UTC.

Exit codes: 0 listed, 1 failed (no such account or tenant), 2 wrong usage or
settings.`,
		Example: "  headroom schedule list --account ann@example.com",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withSchedules(cmd, g, func(ctx context.Context, cfg config.Config, s *sqlite.Store) error {
				lines, err := app.ScheduleLines(ctx, cfg, s, *scope, time.Now())
				if err != nil {
					return err
				}
				if g.json {
					return term.WriteJSON(cmd.OutOrStdout(), lines)
				}
				return tabulateSchedules(cmd.OutOrStdout(), lines)
			})
		},
	}
	scope = scopeFlags(cmd)
	return cmd
}

func tabulateSchedules(out io.Writer, lines []jobs.ScheduleLine) error {
	w := term.NewTable(out, "SCHEDULE", "SPEC", "ZONE", "SETTINGS OF", "ACCOUNTS", "NEXT", "LAST SLOT", "LAST RESULT", "LAG", "MISSED", "PAUSED")
	for _, l := range lines {
		w.Row(l.Schedule, l.Spec, l.Zone, l.SettingsOf, l.Accounts, term.Time(l.Next),
			term.Time(l.LastSlot), resultsCell(l), lagCell(l), l.Missed, pausedCell(l))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, l := range lines { // below the table, which an error of Google's would stretch over several screens
		if l.LastError != "" {
			fmt.Fprintf(out, "last error of %s (settings of %s): %s\n", l.Schedule, term.Clean(l.SettingsOf), term.Clean(l.LastError))
		}
	}
	return nil
}

// resultsCell is a result, or how many accounts had which.
func resultsCell(l jobs.ScheduleLine) string {
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

func lagCell(l jobs.ScheduleLine) string {
	if l.LagSeconds == 0 {
		return term.None
	}
	return time.Duration(l.LagSeconds * float64(time.Second)).Round(time.Second).String()
}

func pausedCell(l jobs.ScheduleLine) string {
	switch l.Paused {
	case 0:
		return term.None
	case l.Accounts:
		return "by " + strings.Join(l.PausedBy, ", ")
	}
	return fmt.Sprintf("%d by %s", l.Paused, strings.Join(l.PausedBy, ", "))
}

func newScheduleNext(g *globals) *cobra.Command {
	var account string
	var n int
	cmd := &cobra.Command{
		Use:   "next [SCHEDULE] [--account ADDRESS] [-n N]",
		Short: "Show when the next runs come",
		Long: `Show the next runs of a schedule, or of all schedules of an account. A slot is the
moment that the specification names, here in its own time zone, so that a change of
the clock shows. An account's run is due some time after it, always the same, over
the spread; without --account the due time is the slot. Runs that make up for missed
ones are not among these; see headroom schedule list.

Exit codes: 0 shown, 1 failed (no such account), 2 wrong usage or settings.`,
		Example: "  headroom schedule next calendar-sync --account ann@example.com -n 5",
		Args:    arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var schedule jobs.Schedule
			if len(args) > 0 {
				var err error
				if schedule, err = jobs.ParseSchedule(args[0]); err != nil {
					return &usageError{err}
				}
			}
			if schedule == "" && account == "" {
				return usagef("name a schedule or an --account; usage: %s", cmd.UseLine())
			}
			if n < 1 || n > maxNext {
				return usagef("-n %d is not from 1 to %d", n, maxNext)
			}
			return withSchedules(cmd, g, func(ctx context.Context, cfg config.Config, s *sqlite.Store) error {
				all, err := app.NextRuns(ctx, cfg, s, schedule, account, time.Now(), n)
				if err != nil {
					return err
				}
				if g.json {
					return term.WriteJSON(cmd.OutOrStdout(), all)
				}
				if len(all) == 0 {
					cmd.Printf("none: the settings have no specification for %s\n", cmp.Or(string(schedule), "any schedule of "+account))
					return nil
				}
				return tabulateNext(cmd.OutOrStdout(), all)
			})
		},
	}
	cmd.Flags().StringVar(&account, "account", "", "those of the account with this `ADDRESS`")
	cmd.Flags().IntVarP(&n, "number", "n", 10, "how many")
	return cmd
}

// maxNext bounds how many coming runs are shown.
const maxNext = 1000

func tabulateNext(out io.Writer, all []jobs.ScheduledRun) error {
	w := term.NewTable(out, "DUE", "SCHEDULE", "SLOT", "ZONE", "SPREAD", "PAUSED")
	for _, r := range all {
		paused := term.None
		if r.Paused {
			paused = "yes"
		}
		zone, _ := r.Slot.Zone()
		w.Row(term.Time(r.Due), r.Schedule, term.TimeIn(r.Slot, r.Slot.Location()), zone, time.Duration(r.Spread*float64(time.Second)), paused)
	}
	return w.Flush()
}
