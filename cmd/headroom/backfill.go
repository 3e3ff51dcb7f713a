package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"headroom/internal/app"
	"headroom/internal/store/sqlite"
	"headroom/internal/term"
	"headroom/jobs"
)

func newBackfill(g *globals) *cobra.Command {
	return group(&cobra.Command{
		Use:     "backfill",
		Short:   "Start, follow and steer the backfills of mailboxes",
		Example: "  headroom backfill start ann@example.com",
	}, newBackfillEstimate(g), newBackfillStart(g), newBackfillList(g), newBackfillShow(g), newBackfillWatch(g),
		newBackfillPause(g), newBackfillResume(g), newBackfillCancel(g), newBackfillFailures(g), newBackfillRetryFailed(g))
}

func newBackfillStart(g *globals) *cobra.Command {
	var f *filterFlags
	var dryRun bool
	var many *allFlags
	cmd := &cobra.Command{
		Use:   "start ACCOUNT | --all",
		Short: "Start the backfill of an account's mailbox",
		Long: `Start the backfill of an account's mailbox, or of the part of it that the flags
name, and put it on the queue, where a worker takes it up (headroom run). There is
one backfill for each account and part: one that is under way or paused is left
alone; one that has ended starts over and fetches only what is not stored yet.
With --dry-run nothing starts, and it is said what that would take, as headroom
backfill estimate does. With --all those of all accounts start: where --state names
no state, those that never were, failed or were cancelled.

Exit codes: 0 started or under way, 1 failed, 2 wrong usage or settings.`,
		Example: `  headroom backfill start ann@example.com
  headroom backfill start ann@example.com --after 2025-01-01 --zone Europe/Berlin --label INBOX --first 1000`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.filter()
			if err != nil {
				return err
			}
			switch {
			case many.all && dryRun:
				return usagef("--dry-run is about one account: headroom backfill start ACCOUNT --dry-run")
			case many.all:
				return startAll(cmd, g, many, filter)
			case dryRun:
				return estimate(cmd, g, args[0], filter, app.EstimateOptions{Sample: app.MostSampled})
			}
			cfg, log, err := g.setUp(cmd)
			if err != nil {
				return err
			}
			started, err := app.StartBackfill(cmd.Context(), cfg, args[0], filter, log)
			if err != nil {
				return err
			}
			if g.json {
				return term.WriteJSON(cmd.OutOrStdout(), started)
			}
			switch name := nameOf(started.Job); {
			case started.Created:
				cmd.Printf("started %s\nfollow it with: headroom backfill watch %s\n", started.Job.ID, name)
			case started.Job.State == jobs.Paused:
				cmd.Printf("paused: %s\nresume it with: headroom backfill resume %s\n", started.Job.ID, started.Job.ID)
			default:
				cmd.Printf("under way already: %s\nfollow it with: headroom backfill watch %s\n", started.Job.ID, name)
			}
			return nil
		},
	}
	f = addFilterFlags(cmd)
	many = addAllFlags(cmd, "start")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "start nothing, and say what it would take")
	return cmd
}

// nameOf is the short name of a backfill: its account's, where that is the whole
// mailbox's.
func nameOf(j jobs.Job) string {
	if j.ID == jobs.BackfillID(j.Account) {
		return j.Account
	}
	return j.ID
}

func newBackfillList(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List all backfills",
		Long: `List all backfills with their state, progress and filter, the oldest first.

Exit codes: 0 listed, 1 failed, 2 wrong usage or settings.`,
		Example: "  headroom backfill list",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd, g, func(ctx context.Context, s *sqlite.Store) error {
				all, err := s.Jobs(ctx)
				if err != nil {
					return err
				}
				all = backfillsOnly(all)
				if g.json {
					return term.WriteJSON(cmd.OutOrStdout(), append([]jobs.Job{}, all...))
				}
				w := term.NewTable(cmd.OutOrStdout(), "BACKFILL", "STATE", "DONE", "OF", "SKIPPED", "OVERSIZE", "FAILED", "UPDATED", "WHAT…")
				for _, j := range all {
					w.Row(nameOf(j), stateText(j), j.Progress.Done(), total(j), j.Progress.Skipped, j.Progress.Oversize, j.Progress.Failed,
						term.Time(j.UpdatedAt), filterText(j.Filter))
				}
				return w.Flush()
			})
		},
	}
}

func backfillsOnly(all []jobs.Job) []jobs.Job {
	return slices.DeleteFunc(all, func(j jobs.Job) bool { return j.Kind != jobs.MailBackfill })
}

// withStore opens the store for a command that reads.
func withStore(cmd *cobra.Command, g *globals, use func(context.Context, *sqlite.Store) error) (err error) {
	cfg, log, err := g.setUp(cmd)
	if err != nil {
		return err
	}
	s, err := app.OpenStore(cmd.Context(), cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return use(cmd.Context(), s)
}
