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

	"headroom/internal/app"
	"headroom/internal/export"
	"headroom/internal/store/sqlite"
	"headroom/internal/term"
	"headroom/jobs"
)

// failureFlags choose entries of a failure list.
type failureFlags struct {
	class, reason string
	ids           []string
}

func addFailureFlags(cmd *cobra.Command) *failureFlags {
	f := &failureFlags{}
	cmd.Flags().StringVar(&f.class, "class", "", "only those of `CLASS`, such as transient or item")
	cmd.Flags().StringVar(&f.reason, "reason", "", "only those with this `REASON`, exactly as listed")
	return f
}

func (f *failureFlags) filter() (jobs.FailureFilter, error) {
	filter := jobs.FailureFilter{Class: jobs.Class(f.class), Reason: f.reason, IDs: f.ids}
	if err := filter.Validate(); err != nil {
		return jobs.FailureFilter{}, &usageError{err}
	}
	return filter, nil
}

func newBackfillFailures(g *globals) *cobra.Command {
	var f *failureFlags
	var file string
	cmd := &cobra.Command{
		Use:   "failures BACKFILL|ACCOUNT",
		Short: "List what a backfill could not fetch",
		Long: `List the messages that a backfill, or all of an account's, could not fetch: id,
what was being done, class and reason of the fault, attempts, first and last time
(in the local time zone; with --json and --csv in UTC), and whether the message was
given up or is tried again. Everything is listed, however long the list.

Exit codes: 0 listed, 1 failed, 2 wrong usage or settings.`,
		Example: `  headroom backfill failures ann@example.com --class transient
  headroom backfill failures ann@example.com --csv failures.csv`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.filter()
			if err != nil {
				return err
			}
			if file != "" && g.json {
				return usagef("--csv and --json are two forms; choose one")
			}
			return withStore(cmd, g, func(ctx context.Context, s *sqlite.Store) error {
				all, err := app.Backfills(ctx, s, args[0])
				if err != nil {
					return err
				}
				failures := func(use func(jobs.Failure) error) error {
					return eachFailure(ctx, s, all, filter, use)
				}
				switch {
				case file != "":
					return exportFailures(cmd.OutOrStdout(), file, failures)
				case g.json:
					list := []jobs.Failure{}
					err := failures(func(f jobs.Failure) error { list = append(list, f); return nil })
					return errors.Join(err, term.WriteJSON(cmd.OutOrStdout(), list))
				}
				return tabulate(cmd.OutOrStdout(), failures)
			})
		},
	}
	f = addFailureFlags(cmd)
	cmd.Flags().StringVar(&file, "csv", "", "write CSV to `FILE`, or to stdout for -")
	return cmd
}

// eachFailure reads the failure lists of some jobs in pages.
func eachFailure(ctx context.Context, s *sqlite.Store, all []jobs.Job, filter jobs.FailureFilter, use func(jobs.Failure) error) error {
	for _, j := range all {
		for after := ""; ; {
			page, err := s.Failures(ctx, j.ID, filter, after, 0)
			if err != nil {
				return err
			}
			if len(page) == 0 {
				break
			}
			for _, f := range page {
				if err := use(f); err != nil {
					return err
				}
				after = f.ID
			}
		}
	}
	return nil
}

func tabulate(out io.Writer, failures func(func(jobs.Failure) error) error) error {
	w := term.NewTable(out, "MESSAGE", "FATE", "ATTEMPTS", "DOING", "CLASS", "FIRST", "LAST", "REASON…")
	err := failures(func(f jobs.Failure) error {
		w.Row(f.ID, fate(f), f.Attempts, f.Phase, f.Class, term.Time(f.FirstAt), term.Time(f.LastAt), f.Reason)
		return nil
	})
	return errors.Join(err, w.Flush())
}

// exportFailures writes CSV to a file, or to out for "-".
func exportFailures(out io.Writer, path string, failures func(func(jobs.Failure) error) error) error {
	if path == "-" {
		return writeCSV(out, failures)
	}
	file, err := export.CreatePrivate(path)
	if err != nil {
		return fmt.Errorf("export failures: %w", err)
	}
	if err := errors.Join(writeCSV(file, failures), file.Close()); err != nil {
		return fmt.Errorf("export failures to %s: %w", path, err)
	}
	return nil
}

func writeCSV(out io.Writer, failures func(func(jobs.Failure) error) error) error {
	w := csv.NewWriter(out)
	if err := w.Write([]string{"job", "id", "given_up", "attempts", "phase", "class", "reason", "first_at", "last_at"}); err != nil {
		return err
	}
	err := failures(func(f jobs.Failure) error {
		return w.Write([]string{f.Job, f.ID, strconv.FormatBool(f.GivenUp), strconv.Itoa(f.Attempts), f.Phase, string(f.Class), f.Reason,
			f.FirstAt.Format(time.RFC3339Nano), f.LastAt.Format(time.RFC3339Nano)})
	})
	w.Flush()
	return errors.Join(err, w.Error())
}
