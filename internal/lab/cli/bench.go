package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"headroom/internal/lab/bench"
	"headroom/internal/term"
)

func newBench(r Root) *cobra.Command {
	var o bench.Options
	var list bool
	cmd := &cobra.Command{
		Use:   "bench NAME",
		Short: "Measure what Headroom promises",
		Long: `Run a benchmark (--list names them all) on real parts and print its figures:
indented, or with --json as one JSON object, the last line on stdout. It starts the
redis-server that it finds on PATH, unless --redis names one. docs/benchmarks.md
explains the figures.

Exit codes: 0 every promise was kept, 1 one was broken or the run failed, 2 wrong
usage, 130 interrupted.`,
		Example: `  headroom bench --list
  headroom bench requeue --json
  headroom bench lanes --full --json`,
		Args: r.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				return listBenchmarks(cmd, r)
			}
			if len(args) == 0 {
				return r.usagef("bench needs a NAME; see %s --list", cmd.CommandPath())
			}
			b, err := bench.Find(args[0])
			if err != nil {
				return r.Usage(err)
			}
			if o.Full && b.Name != "lanes" {
				return r.usagef("only bench lanes has a --full measurement")
			}
			if o.Log, err = quietLog(cmd); err != nil {
				return err
			}
			var last time.Time
			o.Progress = func(done float64, doing string) {
				if now := time.Now(); now.Sub(last) >= tellEvery {
					last = now
					fmt.Fprintf(cmd.ErrOrStderr(), "bench %s: %3.0f %%, %s\n", b.Name, 100*done, doing)
				}
			}
			figures, err := b.Run(cmd.Context(), o)
			if err != nil {
				if cmd.Context().Err() != nil { // the interrupt is the cause of any failure
					return errors.New("the benchmark was stopped before its end")
				}
				return err
			}
			if err := printFigures(cmd, r, figures); err != nil {
				return err
			}
			if broken := figures.Broken(); broken != "" {
				return fmt.Errorf("a promise was broken: %s", broken)
			}
			return nil
		},
	}
	var names []string
	for _, b := range bench.All {
		names = append(names, b.Name)
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return oneOf(names)(cmd, args, prefix)
	}
	cmd.Flags().StringVar(&o.Redis, "redis", "", "measure on the Redis at `URL` (default a redis-server of its own)")
	cmd.Flags().BoolVar(&o.Full, "full", false, "only lanes: simulate 6 seeds of 8 hours, not 2 of 4")
	cmd.Flags().BoolVar(&list, "list", false, "list the benchmarks")
	return cmd
}

func listBenchmarks(cmd *cobra.Command, r Root) error {
	for _, b := range bench.All {
		if r.JSON() {
			if err := term.WriteJSON(cmd.OutOrStdout(), map[string]string{"name": b.Name, "about": b.About, "takes": b.Takes}); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%-12s %-6s %s\n", b.Name, b.Takes, b.About)
	}
	return nil
}

// printFigures prints figures as JSON: on one line for machines, indented for
// people.
func printFigures(cmd *cobra.Command, r Root, figures bench.Figures) error {
	if r.JSON() {
		return term.WriteJSON(cmd.OutOrStdout(), figures)
	}
	text, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return fmt.Errorf("print the figures: %w", err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s\n", text)
	return nil
}
