package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"headroom/internal/control"
	estimates "headroom/internal/control/estimate"
	"headroom/internal/term"
)

func newBackfillEstimate(g *globals) *cobra.Command {
	var f *filterFlags
	var sample int
	cmd := show(g, "estimate ACCOUNT", cobra.ExactArgs(1), func(ctx context.Context, c *control.Control, args []string) (e estimates.Estimate, err error) {
		filter, err := f.filter()
		if err != nil {
			return e, err
		}
		if sample < 0 || sample > estimates.MostSampled {
			return e, usagef("--sample %d is not from 0 to %d", sample, estimates.MostSampled)
		}
		return c.Estimate(ctx, args[0], filter, sample)
	}, writeEstimate)
	f = addFilterFlags(cmd)
	cmd.Flags().IntVar(&sample, "sample", estimates.MostSampled, "ask `N` messages at most for their sizes, where those stored do not tell; 0: estimate no bytes")
	return cmd
}

func writeEstimate(out io.Writer, e estimates.Estimate) error {
	w := term.NewGrid(out)
	w.Add("account", "%s of project %s", e.Account, e.Project)
	w.Row("brings", filterText(e.Filter))
	w.Row("messages", figureText(e.Messages, humanize.Comma))
	w.Row("stored already", figureText(e.Known, humanize.Comma))
	w.Row("to fetch", figureText(e.Fetch, humanize.Comma))
	if e.Bytes != nil {
		w.Row("bytes", figureText(*e.Bytes, bytesText))
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
		w.Add(name, "%s of %s: %s", counted(s.Calls.Value, "call"), call, s.For)
	}
	w.Row("why", e.Why)
	w.Row("asking cost", humanize.Comma(e.Spent)+" units")
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return priceTable.Print(out, false, e.Prices)
}

var priceTable = term.Table[estimates.Priced]{
	Columns: []string{"PRICES", "UNITS", "OF A DAY", "TAKES", "BOUND BY", ""},
	Cells: func(p estimates.Priced) []any {
		share, note, units := term.None, "", humanize.Comma(p.Units.Value)
		if p.DayUnits > 0 {
			share = fmt.Sprintf("%s %% of %s", dayPercent(100*p.DayShare), humanize.Comma(p.DayUnits))
		}
		if p.Own {
			note = "the project's"
		}
		if p.Units.Least != p.Units.Most {
			units += fmt.Sprintf(" (%s to %s)", humanize.Comma(p.Units.Least), humanize.Comma(p.Units.Most))
		}
		return []any{p.List, units, share, lasting(p.Seconds), p.BoundBy, note}
	},
}

// dayPercent is a percentage with three significant digits, never in scientific notation.
func dayPercent(p float64) string {
	if p > 0 && p < 0.001 {
		return "under 0.001"
	}
	if p >= 999.5 {
		return humanize.Comma(int64(math.Round(p)))
	}
	return fmt.Sprintf("%.3g", p)
}

// figureText is a number with its bounds and its origin.
func figureText(f estimates.Figure, text func(int64) string) string {
	if f.Exact() {
		return fmt.Sprintf("%s, %s", text(f.Value), f.How)
	}
	return fmt.Sprintf("~%s (%s to %s), %s", text(f.Value), text(f.Least), text(f.Most), f.How)
}

// lasting is a duration for people.
func lasting(seconds float64) string {
	if days := seconds / 86400; days >= 2 {
		return fmt.Sprintf("%.1f days", days)
	}
	return time.Duration(math.Ceil(seconds) * float64(time.Second)).String()
}
