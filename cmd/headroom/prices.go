package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"headroom/internal/control"
	"headroom/internal/term"
	"headroom/quota/price"
)

func newQuotaPrices(g *globals) *cobra.Command {
	var project string
	var diff bool
	cmd := &cobra.Command{
		Use:  "prices [LIST] [--project PROJECT] [--diff OLD NEW]",
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
			var result any = toJSON(lists)
			if len(args) == 1 {
				result = toJSON(lists)[0]
			}
			return printResult(cmd, g, result, func(out io.Writer, _ any) error { return writeLists(out, lists) })
		},
	}
	cmd.Flags().StringVar(&project, "project", "", "show the lists of a Google Cloud project, by its name in the settings")
	cmd.Flags().BoolVar(&diff, "diff", false, "show what differs between two lists")
	return cmd
}

// pickLists returns the lists of a project, or all built-in lists, or the one of them
// that args name.
func pickLists(g *globals, project string, args []string) (lists []*price.List, err error) {
	if project == "" {
		for _, name := range price.Names() {
			list, err := price.Load(name)
			if err != nil {
				return nil, err
			}
			lists = append(lists, list)
		}
	} else if lists, err = projectLists(g, project); err != nil {
		return nil, err
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

func projectLists(g *globals, project string) ([]*price.List, error) {
	cfg, err := g.load()
	if err != nil {
		return nil, err
	}
	projects, err := control.Projects(cfg)
	if err != nil {
		return nil, err
	}
	p, ok := projects[project]
	if !ok {
		return nil, usagef("unknown project %s, the settings name %s", project, orNone(slices.Sorted(maps.Keys(projects))))
	}
	return p.Lists, nil
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

func toJSON(lists []*price.List) []listJSON {
	all := make([]listJSON, len(lists))
	for i, list := range lists {
		all[i] = listJSON{list, map[string]limitJSON{}, map[string]price.Amount{}, map[string]price.Cost{}}
		for name, limit := range list.Limits {
			limit.Source = sourceName(limit.Source)
			all[i].Limits[name] = limitJSON{limit, limit.Period.String()}
		}
		for name, amount := range list.Billing {
			amount.Source = sourceName(amount.Source)
			all[i].Billing[name] = amount
		}
		for method, cost := range list.Costs {
			cost.Source = sourceName(cost.Source)
			all[i].Costs[method] = cost
		}
	}
	return all
}

// sourceName is the source of a value; values from the usual source do not name it.
func sourceName(name string) string {
	if name == "" {
		return "docs"
	}
	return name
}

// writeLists writes price lists, each as tables of its limits, its billing if there is
// any, its costs and their sources.
func writeLists(out io.Writer, lists []*price.List) error {
	for i, list := range lists {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s: %s as of %s\n\n", list.Name, list.API, list.Date)
		if err := printNamed(out, list.Limits, limitCells, "LIMIT", "UNITS", "PER", "PERIOD", "VERIFIED", "SOURCE", "NOTE…"); err != nil {
			return err
		}
		fmt.Fprintln(out)
		if len(list.Billing) > 0 {
			if err := printNamed(out, list.Billing, amountCells, "BILLED ABOVE", "UNITS", "VERIFIED", "SOURCE", "NOTE…"); err != nil {
				return err
			}
			fmt.Fprintln(out)
		}
		if err := printNamed(out, list.Costs, costCells, "METHOD", "UNITS", "BY FORMAT", "VERIFIED", "SOURCE", "NOTE…"); err != nil {
			return err
		}
		fmt.Fprintln(out)
		if err := printNamed(out, list.Sources, sourceCells, "SOURCE", "LOOKED UP", "WHERE"); err != nil {
			return err
		}
	}
	return nil
}

// printNamed prints a table of a map, by name.
func printNamed[V any](out io.Writer, all map[string]V, cells func(V) []any, columns ...string) error {
	t := term.Table[string]{Columns: columns, Cells: func(name string) []any { return append([]any{name}, cells(all[name])...) }}
	return t.Print(out, false, slices.Sorted(maps.Keys(all)))
}

func limitCells(l price.Limit) []any {
	return []any{l.Units, l.Per, fmt.Sprintf("%.0f s", l.Period.Seconds()), yesNo(l.Verified), sourceName(l.Source), l.Note}
}

func amountCells(a price.Amount) []any {
	return []any{a.Units, yesNo(a.Verified), sourceName(a.Source), a.Note}
}

func costCells(c price.Cost) []any {
	return []any{c.Units, byFormat(c), yesNo(c.Verified), sourceName(c.Source), c.Note}
}

func sourceCells(s price.Source) []any { return []any{s.Date, s.URL} }

// byFormat lists the formats that have a price of their own.
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

func showDiff(cmd *cobra.Command, g *globals, older, newer string) error {
	a, errA := price.Load(older)
	b, errB := price.Load(newer)
	for _, err := range []error{errA, errB} {
		if err != nil {
			return usage(err)
		}
	}
	differences, err := a.Diff(b)
	if err != nil {
		return usage(err)
	}
	table := term.Table[price.Difference]{
		Columns: []string{"WHAT", "NAME", "FORMAT", older, newer},
		Cells: func(d price.Difference) []any {
			format := d.Format
			if format == "" && (len(a.Costs[d.Name].Formats) > 0 || len(b.Costs[d.Name].Formats) > 0) {
				format = "none given"
			}
			return []any{d.Kind, d.Name, format, unitsOrNone(d.Old), unitsOrNone(d.New)}
		},
		Empty: older + " and " + newer + " do not differ",
	}
	result := map[string]any{"old": older, "new": newer, "differences": append([]price.Difference{}, differences...)}
	return printResult(cmd, g, result, func(out io.Writer, _ map[string]any) error { return table.Print(out, false, differences) })
}

func unitsOrNone(units int64) string {
	if units == 0 {
		return "none"
	}
	return fmt.Sprint(units)
}
