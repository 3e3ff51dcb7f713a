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

func newQuota(g *globals) *cobra.Command {
	return group(&cobra.Command{
		Use:     "quota",
		Short:   "Show how full the quota is and what calls cost, and set the lanes' shares",
		Example: "  headroom quota prices gmail-2026-10",
	}, newQuotaShow(g), newQuotaExplain(g), newQuotaPrices(g), newQuotaSet(g), newQuotaHistory(g))
}

func newQuotaShow(g *globals) *cobra.Command {
	var f quotaFlags
	cmd := &cobra.Command{
		Use:   "show ACCOUNT|PROJECT",
		Short: "Show how full the quota is, by whom, and who waits for what",
		Long: `Show the quota of an account, or of a whole Google Cloud project: how full each
window is and which lane filled it, what is left to each lane up to its ceiling and
who set that, cooldowns, calls in flight, bytes, settings that were changed live,
and who waits for what until when. A name with an @ is an account.

It needs no running process: it asks Redis and the store, and charges nothing.
With --watch it looks again every second until it is interrupted.

Exit codes: 0 shown, 1 failed (Redis does not answer, no such account), 2 wrong usage
or settings (no such project). Interrupting --watch is 0.`,
		Example: `  headroom quota show ann@example.com --watch
  headroom quota show my-project --json`,
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
		Use:   "explain ACCOUNT",
		Short: "Show the last decisions about an account, and why",
		Long: `Show the last decisions about an account, each with its reason and the newest
last: what was admitted and refused, what Google refused, what was admitted while
Redis did not answer. Similar decisions that followed each other closely are one line.
The first lines show what holds now and which lanes may go on.

It needs no running process. Processes note decisions in Redis: the last 100 refusals
of each account for an hour, admissions for some minutes, everything else for a day.

Exit codes: 0 shown, 1 failed (Redis does not answer, no such account), 2 wrong usage
or settings. Interrupting --watch is 0.`,
		Example: "  headroom quota explain ann@example.com --last 50",
		Args:    arguments(cobra.ExactArgs(1)),
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

// over reports whether a context has ended, or has a deadline that is past: sockets keep
// to it by themselves, and may time out a moment before the context knows.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

func newQuotaSet(g *globals) *cobra.Command {
	var r control.QuotaRequest
	var unset []string
	cmd := &cobra.Command{
		Use:   "set PROJECT|ACCOUNT KEY=VALUE... [--unset KEY]...",
		Short: "Change how much each lane may use, while processes run",
		Long: `Change the settings of the lanes for a project, or for one account of it. They hold
in every process from its next decision on, take precedence over the settings file,
and are kept until they are unset. The store records who changed what and when:
see headroom quota history.

KEY is mode, for a whole project, with the VALUE default, guaranteed or adaptive;
or, of one of the lanes interactive, sync and backfill:
  LANE.ceiling    how far up each limit the lane may fill it, above 0 and up to 1
  LANE.pace       how fast, as a multiple of ceiling/60 per second; 0: not paced
  LANE.in_flight  how many calls of a Google user may be in flight, in all lanes and
                  processes, before one of this lane must wait
  backfill.floor  how far interactive traffic lowers the ceiling, as a share; 0: not
                  at all

An account's settings take precedence over its project's, those for one limit over
those for all. If Redis does not answer, the change is recorded, and running processes
apply it within seconds after Redis is back.

Exit codes: 0 set, or recorded only, which a warning says; 1 failed (the account is
unknown); 2 wrong usage or settings, an unknown project, or a value that cannot be.`,
		Example: `  headroom quota set my-project mode=adaptive
  headroom quota set ann@example.com backfill.ceiling=0.5 --api gmail
  headroom quota set ann@example.com --unset backfill.ceiling`,
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Target = args[0]
			if r.API != "" && r.Prices != "" {
				return usagef("--prices names an API already; leave out --api")
			}
			add := func(texts []string, unset bool) error {
				for _, text := range texts {
					e, err := control.ParseQuotaEdit(text, unset)
					if err != nil {
						return &usageError{err}
					}
					r.Edits = append(r.Edits, e)
				}
				return nil
			}
			if err := add(args[1:], false); err != nil {
				return err
			}
			if err := add(unset, true); err != nil {
				return err
			}
			if len(r.Edits) == 0 {
				return usagef("nothing to set; usage: %s", cmd.UseLine())
			}
			return g.operate(cmd, func(ctx context.Context, c *control.Control) error {
				set, err := c.SetQuota(ctx, r)
				if err != nil {
					return err
				}
				if set.Unpublished != "" {
					cmd.PrintErrf("headroom: recorded, but not in force yet: %s; running processes go by it once Redis is back\n", set.Unpublished)
				}
				return g.print(cmd, set, func(out io.Writer) error { return writeSet(out, set) })
			})
		},
	}
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
	return &cobra.Command{
		Use:   "history PROJECT|ACCOUNT",
		Short: "Show who changed the lanes' settings, and when",
		Long: `Show every change that headroom quota set has made for a project, or for one
account, the oldest first.

Exit codes: 0 shown, 1 failed (the account is unknown), 2 wrong usage or settings, or
an unknown project.`,
		Example: "  headroom quota history my-project",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.operate(cmd, func(ctx context.Context, c *control.Control) error {
				all, err := c.QuotaHistory(ctx, args[0])
				if err != nil {
					return err
				}
				table := historyTable
				table.Empty = "nothing was ever set for " + args[0]
				return table.Print(cmd.OutOrStdout(), g.json, all)
			})
		},
	}
}
