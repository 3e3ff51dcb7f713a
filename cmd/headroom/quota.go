package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headroom/internal/control"
	"headroom/internal/control/quotaview"
	"headroom/internal/gauge"
	"headroom/internal/term"
)

func newQuotaShow(g *globals) *cobra.Command {
	var f quotaFlags
	cmd := &cobra.Command{
		Use:  "show ACCOUNT|PROJECT",
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, g, args[0], func(ctx context.Context, r *quotaview.Reader) (any, func(*term.Page), error) {
				s, err := r.State(ctx)
				return s, func(p *term.Page) { gauge.WriteState(p, s) }, err
			})
		},
	}
	f.add(cmd)
	return cmd
}

func newQuotaExplain(g *globals) *cobra.Command {
	var f quotaFlags
	var last int
	cmd := &cobra.Command{
		Use:  "explain ACCOUNT",
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !strings.Contains(args[0], "@") {
				return usagef("%q is no account; for a project run: headroom quota show %s", args[0], args[0])
			}
			if last < 1 {
				return usagef("--last %d is not at least 1", last)
			}
			return f.run(cmd, g, args[0], func(ctx context.Context, r *quotaview.Reader) (any, func(*term.Page), error) {
				s, err := r.Story(ctx, last)
				return gauge.StoryJSON(s), func(p *term.Page) { gauge.WriteStory(p, s) }, err
			})
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&last, "last", 20, "show the last `N` decisions")
	return cmd
}

// quotaFlags are those of the commands that read the quota.
type quotaFlags struct {
	project string
	watch   bool
	limit   time.Duration // 0: none
}

func (f *quotaFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.project, "project", "", "the account's Google Cloud `PROJECT`, if the store does not know the account")
	cmd.Flags().BoolVar(&f.watch, "watch", false, "look again every second until interrupted")
	cmd.Flags().DurationVar(&f.limit, "for", 0, "stop watching after this `DURATION`")
}

// watchQuotaEvery is the time between looks at the quota.
const watchQuotaEvery = time.Second

// run looks once, or again and again. look returns what is printed as JSON, and what
// writes it for people.
func (f *quotaFlags) run(cmd *cobra.Command, g *globals, name string,
	look func(context.Context, *quotaview.Reader) (any, func(*term.Page), error)) error {
	if f.limit < 0 || f.limit > 0 && !f.watch {
		return usagef("--for %s says how long to --watch", f.limit)
	}
	return g.operate(cmd, func(ctx context.Context, c *control.Control) (err error) {
		r, err := c.Quota(ctx, name, f.project)
		if err != nil {
			return err
		}
		if f.limit > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, f.limit)
			defer cancel()
		}
		screen := term.NewScreen(cmd.OutOrStdout(), f.watch)
		tick := time.NewTicker(watchQuotaEvery)
		defer tick.Stop()
		for {
			value, write, err := look(ctx, r)
			switch {
			case f.watch && over(ctx):
				return nil
			case err != nil:
				return err
			case g.json:
				err = term.WriteJSON(cmd.OutOrStdout(), value)
			default:
				err = screen.Show(write)
			}
			if err != nil || !f.watch {
				return err
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return nil
			}
		}
	})
}

// over reports whether a context has ended or its deadline has passed. Sockets observe
// the deadline by themselves, and may time out a moment before the context ends.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

func newQuotaSet(g *globals) *cobra.Command {
	var r control.QuotaRequest
	var unset []string
	cmd := g.command("set PROJECT|ACCOUNT KEY=VALUE... [--unset KEY]...", cobra.MinimumNArgs(1), func(ctx context.Context, cmd *cobra.Command, c *control.Control, args []string) (err error) {
		if r.API != "" && r.Prices != "" {
			return usagef("--prices names an API already; leave out --api")
		}
		r.Target = args[0]
		for i, text := range append(args[1:], unset...) {
			e, err := control.ParseQuotaEdit(text, i >= len(args)-1)
			if err != nil {
				return usage(err)
			}
			r.Edits = append(r.Edits, e)
		}
		if len(r.Edits) == 0 {
			return usagef("nothing to set; usage: %s", cmd.UseLine())
		}
		set, err := c.SetQuota(ctx, r)
		if err != nil {
			return err
		}
		if set.Unpublished != "" {
			cmd.PrintErrf("headroom: recorded, but not in force yet: %s; running processes go by it once Redis is back\n", set.Unpublished)
		}
		return printResult(cmd, g, set, writeSet)
	})
	flags := cmd.Flags()
	flags.StringVar(&r.API, "api", "", "change it for one `API` only, gmail or calendar (default all that have the limit)")
	flags.StringVar(&r.Prices, "prices", "", "change it for the API of one of the project's price `LIST`s only")
	flags.StringVar(&r.Limit, "limit", "", "change it for one `LIMIT` only, such as user-minute; headroom quota prices shows them")
	flags.StringArrayVar(&unset, "unset", nil, "let the project's or the mode's value hold again for `KEY`; may be repeated")
	return cmd
}

func writeSet(out io.Writer, set control.QuotaSet) error {
	subject := "project " + set.Project
	if set.Account != "" {
		subject = set.Account + " of " + subject
	}
	if set.Limit != "" {
		subject += ", limit " + set.Limit
	}
	for _, a := range set.APIs {
		switch {
		case a.Changed:
			fmt.Fprintf(out, "%s, %s: revision %d\n", subject, a.API, a.Revision)
		case a.Revision > 0:
			fmt.Fprintf(out, "%s, %s: set already, revision %d\n", subject, a.API, a.Revision)
		default:
			fmt.Fprintf(out, "%s, %s: nothing was set\n", subject, a.API)
		}
		w := term.NewGrid(out)
		w.Indent = "  "
		for _, v := range a.Values {
			w.Add(v.Key, "%v -> %v", v.Old, v.New)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		for _, c := range a.Closer {
			fmt.Fprintf(out, "  %s stays: it counts before\n", c)
		}
	}
	return nil
}

var historyTable = term.Table[control.Setting]{
	Columns: []string{"AT", "API", "REVISION", "WHO", "CHANGE"},
	Cells: func(s control.Setting) []any {
		return []any{term.Time(s.At), s.API, s.Revision, s.Who, s.Change}
	},
}

func newQuotaHistory(g *globals) *cobra.Command {
	return g.command("history PROJECT|ACCOUNT", cobra.ExactArgs(1), func(ctx context.Context, cmd *cobra.Command, c *control.Control, args []string) error {
		all, err := c.QuotaHistory(ctx, args[0])
		if err != nil {
			return err
		}
		table := historyTable
		table.Empty = "nothing was ever set for " + args[0]
		return table.Print(cmd.OutOrStdout(), g.json, all)
	})
}
