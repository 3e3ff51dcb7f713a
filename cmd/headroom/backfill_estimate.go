package main

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"headroom/internal/app"
	"headroom/internal/term"
	"headroom/jobs"
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

Exit codes: 0 estimated, 1 failed, 2 wrong usage or settings, 130 interrupted.`,
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
		return term.WriteJSON(cmd.OutOrStdout(), e)
	}
	return printEstimate(cmd.OutOrStdout(), e)
}

func printEstimate(out io.Writer, e app.Estimate) error {
	facts := term.NewFacts(out)
	number := func(n int64) string { return humanize.Comma(n) }
	facts.Add("account", "%s of project %s", e.Account, e.Project)
	facts.Add("brings", "%s", filterText(e.Filter))
	facts.Add("messages", "%s", figureText(e.Messages, number))
	facts.Add("stored already", "%s", figureText(e.Known, number))
	facts.Add("to fetch", "%s", figureText(e.Fetch, number))
	if e.Bytes != nil {
		facts.Add("bytes", "%s", figureText(*e.Bytes, func(n int64) string { return humanize.IBytes(uint64(n)) }))
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
		facts.Add(name, "%s of %s: %s", counted(s.Calls.Value, "call"), call, s.For)
	}
	facts.Add("why", "%s", e.Why)
	facts.Add("asking cost", "%s units", number(e.Spent))
	if err := facts.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	w := term.NewTable(out, "PRICES", "UNITS", "OF A DAY", "TAKES", "BOUND BY", "")
	for _, p := range e.Prices {
		share := term.None
		if p.DayUnits > 0 {
			share = fmt.Sprintf("%s %% of %s", dayPercent(100*p.DayShare), number(p.DayUnits))
		}
		note := ""
		if p.Own {
			note = "the project's"
		}
		units := number(p.Units.Value)
		if p.Units.Least != p.Units.Most {
			units += fmt.Sprintf(" (%s to %s)", number(p.Units.Least), number(p.Units.Most))
		}
		w.Row(p.List, units, share, lasting(p.Seconds), p.BoundBy, note)
	}
	return w.Flush()
}

// dayPercent is a share of a hundred with three digits that count, and never a power of ten.
func dayPercent(p float64) string {
	if p > 0 && p < 0.001 {
		return "under 0.001"
	}
	if p >= 999.5 {
		return humanize.Comma(int64(math.Round(p)))
	}
	return fmt.Sprintf("%.3g", p)
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
