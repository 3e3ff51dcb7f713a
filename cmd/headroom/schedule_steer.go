package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/store/sqlite"
	"headroom/internal/term"
	"headroom/jobs"
)

func newScheduleRun(g *globals) *cobra.Command {
	var scope *jobs.ScheduleScope
	cmd := &cobra.Command{
		Use:   "run SCHEDULE [--account ADDRESS | --tenant NAME]",
		Short: "Run a schedule now",
		Long: `Run a schedule now, whether it is paused or not, for an account, for a tenant's
accounts or for all. A running scheduler does the work within seconds; where it is
under way, once more after that. The slots stay as they are, so the next regular run
comes when it would have come.

Exit codes: 0 asked for, 1 failed (no such account or tenant, or there is nothing to
ask for of the account), 2 wrong usage or settings.`,
		Example: "  headroom schedule run reconciliation --account ann@example.com",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			schedule, err := jobs.ParseSchedule(args[0])
			if err != nil {
				return &usageError{err}
			}
			return withSchedules(cmd, g, func(ctx context.Context, cfg config.Config, s *sqlite.Store) error {
				ran, err := app.RunScheduleNow(ctx, cfg, s, schedule, *scope, time.Now())
				if err != nil {
					return err
				}
				if g.json {
					return term.WriteJSON(cmd.OutOrStdout(), ran)
				}
				if ran.Account != "" {
					cmd.Printf("asked for %s of %s\n", schedule, ran.Account)
					return nil
				}
				cmd.Printf("asked for %s of %d of %d accounts\n", schedule, ran.Asked, ran.Accounts)
				return nil
			})
		},
	}
	scope = scopeFlags(cmd)
	return cmd
}

func newSchedulePause(g *globals) *cobra.Command {
	return newScheduleSwitch(g, &cobra.Command{
		Use:   "pause SCHEDULE [--account ADDRESS | --tenant NAME]",
		Short: "Keep a schedule from running",
		Long: `Keep a schedule from running for an account, for a tenant's accounts or for all,
until it is resumed for the same. It outlives restarts. What is under way goes on,
and people may ask for the work as before. To pause twice is fine.

Exit codes: 0 paused, 1 failed (no such account or tenant), 2 wrong usage or
settings.`,
		Example: "  headroom schedule pause reconciliation --tenant example.com",
	}, app.PauseSchedule)
}

func newScheduleResume(g *globals) *cobra.Command {
	return newScheduleSwitch(g, &cobra.Command{
		Use:   "resume SCHEDULE [--account ADDRESS | --tenant NAME]",
		Short: "Let a schedule run again",
		Long: `End the pause of a schedule that was made for the same account, tenant, or for all.
What else pauses it stays, and is named. What was left out is made up for by one run,
unless the settings say otherwise, and is not counted as missed. To resume twice is
fine.

Exit codes: 0 resumed, or nothing was to be, 1 failed (no such account or tenant),
2 wrong usage or settings.`,
		Example: "  headroom schedule resume reconciliation --tenant example.com",
	}, app.ResumeSchedule)
}

type switchFunc func(context.Context, config.Config, *sqlite.Store, jobs.Schedule, jobs.ScheduleScope) (jobs.SchedulePausing, error)

// newScheduleSwitch makes a command that pauses or resumes.
func newScheduleSwitch(g *globals, cmd *cobra.Command, do switchFunc) *cobra.Command {
	scope := scopeFlags(cmd)
	cmd.Args = arguments(cobra.ExactArgs(1))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		schedule, err := jobs.ParseSchedule(args[0])
		if err != nil {
			return &usageError{err}
		}
		return withSchedules(cmd, g, func(ctx context.Context, cfg config.Config, s *sqlite.Store) error {
			done, err := do(ctx, cfg, s, schedule, *scope)
			if err != nil {
				return err
			}
			if g.json {
				return term.WriteJSON(cmd.OutOrStdout(), done)
			}
			tellSwitched(cmd, done)
			return nil
		})
	}
	return cmd
}

func tellSwitched(cmd *cobra.Command, done jobs.SchedulePausing) {
	paused := cmd.Name() == "pause"
	what := map[[2]bool]string{
		{true, true}: "paused", {true, false}: "was paused already:", {false, true}: "resumed", {false, false}: "was not paused:",
	}[[2]bool{paused, done.Changed}]
	cmd.Printf("%s %s of %s\n", what, done.Schedule, done.ScheduleScope)
	if !paused && len(done.By) > 0 {
		cmd.Printf("still paused by %s; resume it for the same, or see schedules.%s.pause in the settings\n", strings.Join(done.By, ", "), done.Schedule)
	}
}
