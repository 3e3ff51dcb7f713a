package main

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"headroom/internal/app"
	"headroom/jobs"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
)

func newBackfillEstimate(g *globals) *cobra.Command {
	var f *filterFlags
	var o app.EstimateOptions
	cmd := &cobra.Command{
		Use:   "estimate ACCOUNT",
		Short: "Say what a backfill would take, and start nothing",
		Long: `Say what the backfill of an account's mailbox, or of the part of it that the flags
name, would take: messages, units by every price list of Gmail, their share of a
day, bytes, and the time at the backfills' ceiling while nobody else spends quota.
A few cheap calls ask Google; each number says how sure it is.

Exit codes: 0 estimated, 1 failed, 2 wrong usage or settings.`,
		Example: `  headroom backfill estimate ann@example.com
  headroom backfill estimate ann@example.com --after 2025-01-01 --format metadata-first --json`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.filter()
			if err != nil {
				return err
			}
			if o.Sample < 0 || o.Sample > app.MostSampled {
				return usagef("--sample %d is not from 0 to %d", o.Sample, app.MostSampled)
			}
			return estimate(cmd, g, args[0], filter, o)
		},
	}
	f = addFilterFlags(cmd)
	cmd.Flags().IntVar(&o.Sample, "sample", app.MostSampled, "ask `N` messages at most for their sizes, where those stored do not tell; 0: estimate no bytes")
	return cmd
}

// estimate prints what a backfill would take.
func estimate(cmd *cobra.Command, g *globals, account string, filter jobs.Filter, o app.EstimateOptions) error {
	cfg, log, err := g.setUp(cmd)
	if err != nil {
		return err
	}
	e, err := app.EstimateBackfill(cmd.Context(), cfg, account, filter, o, log)
	if err != nil {
		return err
	}
	if g.json {
		return printJSON(cmd, e)
	}
	printEstimate(cmd.OutOrStdout(), e)
	return nil
}

func printEstimate(out io.Writer, e app.Estimate) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	number := func(n int64) string { return humanize.Comma(n) }
	fmt.Fprintf(w, "account\t%s of project %s\n", e.Account, e.Project)
	fmt.Fprintf(w, "brings\t%s\n", filterText(e.Filter))
	fmt.Fprintf(w, "messages\t%s\n", figureText(e.Messages, number))
	fmt.Fprintf(w, "stored already\t%s\n", figureText(e.Known, number))
	fmt.Fprintf(w, "to fetch\t%s\n", figureText(e.Fetch, number))
	if e.Bytes != nil {
		fmt.Fprintf(w, "bytes\t%s\n", figureText(*e.Bytes, func(n int64) string { return humanize.IBytes(uint64(n)) }))
	}
	for i, s := range e.Plan {
		name := "plan"
		if i > 0 {
			name = ""
		}
		call := s.Method
		if s.Format != "" {
			call += " " + s.Format
		}
		fmt.Fprintf(w, "%s\t%s calls of %s: %s\n", name, number(s.Calls.Value), call, s.For)
	}
	fmt.Fprintf(w, "why\t%s\n", e.Why)
	fmt.Fprintf(w, "asking cost\t%s units\n", number(e.Spent))
	w.Flush()

	fmt.Fprintln(out)
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PRICES\tUNITS\tOF A DAY\tTAKES\tBOUND BY\t")
	for _, p := range e.Prices {
		share := "-"
		if p.DayUnits > 0 {
			share = fmt.Sprintf("%.3g %% of %s", 100*p.DayShare, number(p.DayUnits))
		}
		note := ""
		if p.Own {
			note = "the project's"
		}
		units := number(p.Units.Value)
		if p.Units.Least != p.Units.Most {
			units += fmt.Sprintf(" (%s to %s)", number(p.Units.Least), number(p.Units.Most))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", p.List, units, share, lasting(p.Seconds), p.BoundBy, note)
	}
	w.Flush()
}

// figureText is a number with its bounds and where it is from.
func figureText(f app.Figure, text func(int64) string) string {
	if f.Exact() {
		return fmt.Sprintf("%s, %s", text(f.Value), f.How)
	}
	return fmt.Sprintf("~%s (%s to %s), %s", text(f.Value), text(f.Least), text(f.Most), f.How)
}

// lasting is a time for people.
func lasting(seconds float64) string {
	if days := seconds / 86400; days >= 2 {
		return fmt.Sprintf("%.1f days", days)
	}
	return time.Duration(math.Ceil(seconds) * float64(time.Second)).String()
}
