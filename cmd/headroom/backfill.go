package main

import (
	"context"
	"errors"
	"fmt"
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
	cmd := g.command("start ACCOUNT | --all", cobra.ExactArgs(1), func(ctx context.Context, cmd *cobra.Command, c *control.Control, args []string) error {
		filter, err := f.filter()
		if err != nil {
			return err
		}
		switch {
		case many.all && dryRun:
			return usagef("--dry-run is about one account: headroom backfill start ACCOUNT --dry-run")
		case many.all:
			chosen, err := many.selection()
			if err != nil {
				return err
			}
			all, err := c.StartAll(ctx, chosen, filter)
			return printSteered(cmd, g, all, err, true, "started", func(s control.Started) string {
				if s.Created {
					return "started: " + s.Job.ID
				}
				return "under way already: " + s.Job.ID
			})
		case dryRun:
			e, err := c.Estimate(ctx, args[0], filter, estimates.MostSampled)
			if err != nil {
				return err
			}
			return printResult(cmd, g, e, writeEstimate)
		}
		started, err := c.StartBackfill(ctx, args[0], filter)
		if err != nil {
			return err
		}
		return printResult(cmd, g, started, text(startedText))
	})
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

var backfillTable = term.Table[jobs.Job]{
	Columns: []string{"BACKFILL", "STATE", "DONE", "OF", "SKIPPED", "OVERSIZE", "FAILED", "UPDATED", "WHAT…"},
	Cells: func(j jobs.Job) []any {
		p := j.Progress
		return []any{nameOf(j), stateText(j), p.Done(), total(j), p.Skipped, p.Oversize, p.Failed, term.Time(j.UpdatedAt), filterText(j.Filter)}
	},
	Empty: "there are no backfills; start one with: headroom backfill start ACCOUNT",
}

func newBackfillList(g *globals) *cobra.Command {
	return list(g, "list", cobra.NoArgs, backfillTable, func(ctx context.Context, c *control.Control, _ []string) ([]jobs.Job, error) {
		return c.AllBackfills(ctx, false)
	})
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
	return show(g, "show BACKFILL|ACCOUNT", cobra.ExactArgs(1), showJob, writeJob)
}

func showJob(ctx context.Context, c *control.Control, args []string) (s shown, err error) {
	if s.Job, err = oneBackfill(ctx, c, args[0]); err != nil {
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
