package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"headroom/internal/app"
	"headroom/internal/term"
	"headroom/quota/price"
)

func newQuota(g *globals) *cobra.Command {
	return group(&cobra.Command{
		Use:     "quota",
		Short:   "Show what Google lets through and what calls cost",
		Example: "  headroom quota prices gmail-2026-10",
	}, newQuotaShow(g), newQuotaExplain(g), newQuotaPrices(g), newQuotaSet(g), newQuotaHistory(g))
}

func newQuotaPrices(g *globals) *cobra.Command {
	var project string
	var diff bool
	cmd := &cobra.Command{
		Use:   "prices [LIST] [--project PROJECT] [--diff OLD NEW]",
		Short: "Show price lists, or what differs between two",
		Long: `Show the limits and costs that Headroom counts by, with their date and where they
come from: of one built-in price list, or of all. With --project, those that hold
for a Google Cloud project of the settings, its own limits and costs included.
With --diff, only what differs between two lists.

Values that were not seen on Google's own page are not verified, and are the
dearest plausible ones.

Exit codes: 0 shown, 2 wrong usage or settings, or no such list or project.`,
		Example: `  headroom quota prices gmail-2026-10
  headroom quota prices --diff gmail-2026-05 gmail-2026-10
  headroom quota prices --project my-project --json`,
		Args: arguments(cobra.MaximumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case diff && project != "":
				return usagef("--diff compares built-in lists; leave out --project")
			case diff && len(args) != 2:
				return usagef("--diff needs two price lists; there are %s", strings.Join(price.Names(), ", "))
			case diff:
				return showDiff(cmd, g, args[0], args[1])
			case len(args) > 1:
				return usagef("one LIST at a time; to compare two: %s --diff %s %s", cmd.CommandPath(), args[0], args[1])
			}
			lists, err := pickLists(g, project, args)
			if err != nil {
				return err
			}
			return showLists(cmd, g, lists, len(args) == 1)
		},
	}
	cmd.Flags().StringVar(&project, "project", "", "show the lists of a Google Cloud project, by its name in the settings")
	cmd.Flags().BoolVar(&diff, "diff", false, "show what differs between two lists")
	return cmd
}

// pickLists finds the lists of a project, or of all that are built in, and the
// one of them that is asked for.
func pickLists(g *globals, project string, args []string) ([]*price.List, error) {
	var lists []*price.List
	if project != "" {
		cfg, err := g.load()
		if err != nil {
			return nil, err
		}
		projects, err := app.Projects(cfg)
		if err != nil {
			return nil, err
		}
		p, ok := projects[project]
		if !ok {
			return nil, usagef("unknown project %s, the settings name %s", project, orNone(slices.Sorted(maps.Keys(projects))))
		}
		lists = p.Lists
	} else {
		for _, name := range price.Names() {
			list, err := price.Load(name)
			if err != nil {
				return nil, err
			}
			lists = append(lists, list)
		}
	}
	if len(args) == 0 {
		return lists, nil
	}
	var names []string
	for _, list := range lists {
		if list.Name == args[0] {
			return []*price.List{list}, nil
		}
		names = append(names, list.Name)
	}
	if project != "" {
		return nil, usagef("project %s has no price list %q; it has %s", project, args[0], orNone(names))
	}
	return nil, usagef("unknown price list %q; there are %s", args[0], orNone(names))
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// listJSON is a price list in which every value names its source, and periods are
// durations such as "1m0s".
type listJSON struct {
	*price.List
	Limits  map[string]limitJSON    `json:"limits"`
	Billing map[string]price.Amount `json:"billing"`
	Costs   map[string]price.Cost   `json:"costs"`
}

type limitJSON struct {
	price.Limit
	Period string `json:"period"`
}

func toJSON(list *price.List) listJSON {
	out := listJSON{list, map[string]limitJSON{}, map[string]price.Amount{}, map[string]price.Cost{}}
	for name, limit := range list.Limits {
		limit.Source = sourceName(limit.Source)
		out.Limits[name] = limitJSON{limit, limit.Period.String()}
	}
	for name, amount := range list.Billing {
		amount.Source = sourceName(amount.Source)
		out.Billing[name] = amount
	}
	for method, cost := range list.Costs {
		cost.Source = sourceName(cost.Source)
		out.Costs[method] = cost
	}
	return out
}

// showLists prints lists: as JSON, one object if one was asked for by its name,
// else an array.
func showLists(cmd *cobra.Command, g *globals, lists []*price.List, one bool) error {
	if !g.json {
		for i, list := range lists {
			if i > 0 {
				fmt.Fprintln(cmd.OutOrStdout())
			}
			if err := writeList(cmd.OutOrStdout(), list); err != nil {
				return err
			}
		}
		return nil
	}
	all := make([]listJSON, len(lists))
	for i, list := range lists {
		all[i] = toJSON(list)
	}
	if one {
		return term.WriteJSON(cmd.OutOrStdout(), all[0])
	}
	return term.WriteJSON(cmd.OutOrStdout(), all)
}

func writeList(out io.Writer, list *price.List) error {
	fmt.Fprintf(out, "%s: %s as of %s\n\n", list.Name, list.API, list.Date)
	w := term.NewTable(out, "LIMIT", "UNITS", "PER", "PERIOD", "VERIFIED", "SOURCE", "NOTE…")
	for _, name := range slices.Sorted(maps.Keys(list.Limits)) {
		l := list.Limits[name]
		w.Row(name, l.Units, l.Per, fmt.Sprintf("%.0f s", l.Period.Seconds()), yesNo(l.Verified), sourceName(l.Source), l.Note)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(list.Billing) > 0 {
		w = term.NewTable(out, "BILLED ABOVE", "UNITS", "VERIFIED", "SOURCE", "NOTE…")
		for _, name := range slices.Sorted(maps.Keys(list.Billing)) {
			b := list.Billing[name]
			w.Row(name, b.Units, yesNo(b.Verified), sourceName(b.Source), b.Note)
		}
		fmt.Fprintln(out)
		if err := w.Flush(); err != nil {
			return err
		}
	}
	w = term.NewTable(out, "METHOD", "UNITS", "BY FORMAT", "VERIFIED", "SOURCE", "NOTE…")
	for _, method := range slices.Sorted(maps.Keys(list.Costs)) {
		c := list.Costs[method]
		w.Row(method, c.Units, byFormat(c), yesNo(c.Verified), sourceName(c.Source), c.Note)
	}
	fmt.Fprintln(out)
	if err := w.Flush(); err != nil {
		return err
	}
	w = term.NewTable(out, "SOURCE", "LOOKED UP", "WHERE")
	for _, name := range slices.Sorted(maps.Keys(list.Sources)) {
		w.Row(name, list.Sources[name].Date, list.Sources[name].URL)
	}
	fmt.Fprintln(out)
	return w.Flush()
}

// byFormat lists the formats whose price is their own.
func byFormat(c price.Cost) string {
	var prices []string
	for _, format := range slices.Sorted(maps.Keys(c.Formats)) {
		price := fmt.Sprintf("%s %d", format, c.Formats[format])
		if format == c.DefaultFormat {
			price += " (default)"
		}
		prices = append(prices, price)
	}
	return strings.Join(prices, ", ")
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// sourceName is the source of a value, which need not name the usual one.
func sourceName(name string) string {
	if name == "" {
		return "docs"
	}
	return name
}

func showDiff(cmd *cobra.Command, g *globals, older, newer string) error {
	a, err := price.Load(older)
	if err != nil {
		return &usageError{err}
	}
	b, err := price.Load(newer)
	if err != nil {
		return &usageError{err}
	}
	differences, err := a.Diff(b)
	if err != nil {
		return &usageError{err}
	}
	if g.json {
		return term.WriteJSON(cmd.OutOrStdout(), map[string]any{"old": older, "new": newer, "differences": append([]price.Difference{}, differences...)})
	}
	if len(differences) == 0 {
		cmd.Printf("%s and %s do not differ\n", older, newer)
		return nil
	}
	w := term.NewTable(cmd.OutOrStdout(), "WHAT", "NAME", "FORMAT", older, newer)
	for _, d := range differences {
		format := d.Format
		if format == "" && (len(a.Costs[d.Name].Formats) > 0 || len(b.Costs[d.Name].Formats) > 0) {
			format = "none given"
		}
		w.Row(d.Kind, d.Name, format, unitsOrNone(d.Old), unitsOrNone(d.New))
	}
	return w.Flush()
}

func unitsOrNone(units int64) string {
	if units == 0 {
		return "none"
	}
	return fmt.Sprint(units)
}
