package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"headroom/internal/control"
	"headroom/internal/export"
	"headroom/internal/term"
	"headroom/jobs"
)

var failureTable = term.Table[jobs.Failure]{
	Columns: []string{"MESSAGE", "FATE", "ATTEMPTS", "DOING", "CLASS", "FIRST", "LAST", "REASON…"},
	Cells: func(f jobs.Failure) []any {
		return []any{f.ID, fate(f), f.Attempts, f.Phase, f.Class, term.Time(f.FirstAt), term.Time(f.LastAt), f.Reason}
	},
	Empty: "no failed messages match",
}

// fate is what happens next to an item on the failure list.
func fate(f jobs.Failure) string {
	if f.GivenUp {
		return "given up"
	}
	return "to be tried again"
}

func newBackfillFailures(g *globals) *cobra.Command {
	var f *failureFlags
	var file string
	cmd := g.command("failures BACKFILL|ACCOUNT", cobra.ExactArgs(1), func(ctx context.Context, cmd *cobra.Command, c *control.Control, args []string) error {
		filter, err := f.filter()
		if err != nil {
			return err
		}
		if file != "" && g.json {
			return usagef("--csv and --json are two forms; choose one")
		}
		all, err := allFailures(ctx, c, args[0], filter)
		if err != nil {
			return err
		}
		if file != "" {
			return exportFailures(cmd.OutOrStdout(), file, all)
		}
		return failureTable.Print(cmd.OutOrStdout(), g.json, all)
	})
	f = addFailureFlags(cmd)
	cmd.Flags().StringVar(&file, "csv", "", "write CSV to `FILE`, or to stdout for -")
	return cmd
}

// allFailures reads the failure lists of all backfills of a name.
func allFailures(ctx context.Context, c *control.Control, name string, filter jobs.FailureFilter) (all []jobs.Failure, err error) {
	backfills, err := c.Backfills(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, j := range backfills {
		for after := ""; ; {
			page, err := c.Failures(ctx, j.ID, filter, after, 0)
			if err != nil {
				return nil, err
			}
			if len(page) == 0 {
				break
			}
			all = append(all, page...)
			after = page[len(page)-1].ID
		}
	}
	return all, nil
}

// exportFailures writes CSV to a file, or to out for "-".
func exportFailures(out io.Writer, path string, all []jobs.Failure) error {
	if path == "-" {
		return writeCSV(out, all)
	}
	file, err := export.CreatePrivate(path)
	if err != nil {
		return fmt.Errorf("export failures: %w", err)
	}
	if err := errors.Join(writeCSV(file, all), file.Close()); err != nil {
		return fmt.Errorf("export failures to %s: %w", path, err)
	}
	return nil
}

func writeCSV(out io.Writer, all []jobs.Failure) error {
	rows := [][]string{{"job", "id", "given_up", "attempts", "phase", "class", "reason", "first_at", "last_at"}}
	for _, f := range all {
		rows = append(rows, []string{f.Job, f.ID, strconv.FormatBool(f.GivenUp), strconv.Itoa(f.Attempts), f.Phase, string(f.Class), f.Reason,
			f.FirstAt.Format(time.RFC3339Nano), f.LastAt.Format(time.RFC3339Nano)})
	}
	return csv.NewWriter(out).WriteAll(rows)
}
