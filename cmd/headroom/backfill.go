package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"headroom/internal/control"
	estimates "headroom/internal/control/estimate"
	"headroom/internal/term"
	"headroom/jobs"
)

func newBackfillStart(g *globals) *cobra.Command {
	var f *filterFlags
	var dryRun bool
	var many *allFlags
	cmd := &cobra.Command{
		Use:  "start ACCOUNT | --all",
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
				return showEstimate(cmd, g, args[0], filter, estimates.MostSampled)
			}
			return g.operate(cmd, func(ctx context.Context, c *control.Control) error {
				started, err := c.StartBackfill(ctx, args[0], filter)
				if err != nil {
					return err
				}
				return g.printf(cmd, started, "%s\n", startedText(started))
			})
		},
	}
	f = addFilterFlags(cmd)
	many = addAllFlags(cmd, "start")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "start nothing, and show what the backfill would take")
	return cmd
}

func startedText(s control.Started) string {
	switch {
	case s.Created:
		return fmt.Sprintf("started %s\nfollow it with: headroom backfill watch %s", s.Job.ID, nameOf(s.Job))
	case s.Job.State == jobs.Paused:
		return fmt.Sprintf("paused: %s\nresume it with: headroom backfill resume %s", s.Job.ID, s.Job.ID)
	}
	return fmt.Sprintf("under way already: %s\nfollow it with: headroom backfill watch %s", s.Job.ID, nameOf(s.Job))
}

// startAll starts the backfills of all chosen accounts.
func startAll(cmd *cobra.Command, g *globals, f *allFlags, filter jobs.Filter) error {
	chosen, err := f.selection()
	if err != nil {
		return err
	}
	return g.operate(cmd, func(ctx context.Context, c *control.Control) error {
		all, err := c.StartAll(ctx, chosen, filter)
		return errors.Join(g.print(cmd, append([]control.Started{}, all...), func(out io.Writer) error {
			for _, one := range all {
				what := "under way already: "
				if one.Created {
					what = "started: "
				}
				fmt.Fprintln(out, what+one.Job.ID)
			}
			return sayHowMany(out, len(all), "started")
		}), err)
	})
}

var backfillTable = term.Table[jobs.Job]{
	Columns: []string{"BACKFILL", "STATE", "DONE", "OF", "SKIPPED", "OVERSIZE", "FAILED", "UPDATED", "WHAT…"},
	Cells: func(j jobs.Job) []any {
		p := j.Progress
		return []any{nameOf(j), stateText(j), p.Done(), total(j), p.Skipped, p.Oversize, p.Failed, term.Time(j.UpdatedAt), filterText(j.Filter)}
	},
	Empty: "there are no backfills; start one with: headroom backfill start ACCOUNT",
}

func newBackfillList(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:  "list",
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.operate(cmd, func(ctx context.Context, c *control.Control) error {
				all, err := c.AllBackfills(ctx, false)
				if err != nil {
					return err
				}
				return backfillTable.Print(cmd.OutOrStdout(), g.json, all)
			})
		},
	}
}

// maxShownFailures is how many entries of the failure list are printed.
const maxShownFailures = 1000

// shown is a job with its failure list.
type shown struct {
	jobs.Job
	FailureList []jobs.Failure `json:"failure_list"` // at most the first thousand
	Plan        estimates.Plan `json:"plan"`
	Cursor      *jobs.Cursor   `json:"cursor,omitempty"` // of a live sync
}

func newBackfillShow(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:  "show BACKFILL|ACCOUNT",
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.operate(cmd, func(ctx context.Context, c *control.Control) error {
				s, err := showJob(ctx, c, args[0])
				if err != nil {
					return err
				}
				return g.print(cmd, s, func(out io.Writer) error { return writeJob(out, s) })
			})
		},
	}
}

func showJob(ctx context.Context, c *control.Control, name string) (s shown, err error) {
	if s.Job, err = oneBackfill(ctx, c, name); err != nil {
		return s, err
	}
	failures, err := c.Failures(ctx, s.ID, jobs.FailureFilter{}, "", maxShownFailures)
	if err != nil {
		return s, err
	}
	s.FailureList = append([]jobs.Failure{}, failures...)
	if s.Plan, err = c.Plan(s.Job); err != nil || s.Kind != jobs.MailSync {
		return s, err
	}
	cursor, err := c.Cursor(ctx, s.Account)
	if errors.Is(err, jobs.ErrNoCursor) {
		return s, nil
	}
	s.Cursor = &cursor
	return s, err
}

// oneBackfill finds the one backfill that a name stands for.
func oneBackfill(ctx context.Context, c *control.Control, name string) (jobs.Job, error) {
	all, err := c.Backfills(ctx, name)
	if err != nil {
		return jobs.Job{}, err
	}
	var ids []string
	for _, j := range all {
		if len(all) == 1 || j.ID == jobs.BackfillID(j.Account) {
			return j, nil
		}
		ids = append(ids, j.ID)
	}
	return jobs.Job{}, fmt.Errorf("%s has %d backfills, name one of them: %s", name, len(all), strings.Join(ids, ", "))
}
