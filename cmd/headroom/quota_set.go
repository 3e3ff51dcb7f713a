package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"headroom/internal/app"
	"headroom/internal/store/sqlite"
	"headroom/internal/term"
)

func newQuotaSet(g *globals) *cobra.Command {
	var r app.QuotaRequest
	var unset []string
	cmd := &cobra.Command{
		Use:   "set PROJECT|ACCOUNT KEY=VALUE... [--unset KEY]...",
		Short: "Change how much each lane may use, while processes run",
		Long: `Change the settings of the lanes for a project, or for one account of it. They hold
in every process with its next decision, count before those of the settings file,
and are kept until they are unset. The store keeps who changed what and when:
see headroom quota history.

KEY is mode, for a whole project, with the VALUE default, guaranteed or adaptive;
or, of one of the lanes interactive, sync and backfill:
  LANE.ceiling    how far up each limit the lane may fill it, above 0 and up to 1
  LANE.pace       how fast, as a multiple of ceiling/60 per second; 0: not paced
  LANE.in_flight  how many calls of a Google user may be in flight, in all lanes and
                  processes, before one of this lane must wait
  backfill.floor  how far the ceiling gives way to people, as a share; 0: not at all

An account's settings count before its project's, those for one limit before those
for all. When Redis does not answer, the change is kept all the same, and running
processes go by it within seconds after Redis is back.

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
			for _, text := range args[1:] {
				if err := addEdit(&r, text, false); err != nil {
					return err
				}
			}
			for _, key := range unset {
				if err := addEdit(&r, key, true); err != nil {
					return err
				}
			}
			if len(r.Edits) == 0 {
				return usagef("nothing to set; usage: %s", cmd.UseLine())
			}
			cfg, log, err := g.setUp(cmd)
			if err != nil {
				return err
			}
			set, err := app.SetQuota(cmd.Context(), cfg, r, log)
			if err != nil {
				return err
			}
			if set.Unpublished != "" {
				cmd.PrintErrf("headroom: recorded, but not in force yet: %s; running processes go by it once Redis is back\n", set.Unpublished)
			}
			if g.json {
				return term.WriteJSON(cmd.OutOrStdout(), set)
			}
			return writeSet(cmd.OutOrStdout(), set)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&r.API, "api", "", "change it for one `API` only, gmail or calendar (default all that have the limit)")
	flags.StringVar(&r.Prices, "prices", "", "change it for the API of one of the project's price `LIST`s only")
	flags.StringVar(&r.Limit, "limit", "", "change it for one `LIMIT` only, such as user-minute; headroom quota prices shows them")
	flags.StringArrayVar(&unset, "unset", nil, "let the project's or the mode's value hold again for `KEY`; may be repeated")
	return cmd
}

func addEdit(r *app.QuotaRequest, text string, unset bool) error {
	e, err := app.ParseQuotaEdit(text, unset)
	if err != nil {
		return &usageError{err}
	}
	r.Edits = append(r.Edits, e)
	return nil
}

func writeSet(out io.Writer, set app.QuotaSet) error {
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
		values := term.NewFacts(out)
		values.Indent = "  "
		for _, v := range a.Values {
			values.Add(v.Key, "%v -> %v", v.Old, v.New)
		}
		if err := values.Flush(); err != nil {
			return err
		}
		for _, c := range a.Closer {
			fmt.Fprintf(out, "  %s stays: it counts before\n", c)
		}
	}
	return nil
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
			cfg, log, err := g.setUp(cmd)
			if err != nil {
				return err
			}
			history, err := app.QuotaHistory(cmd.Context(), cfg, args[0], log)
			if err != nil {
				return err
			}
			if g.json {
				return term.WriteJSON(cmd.OutOrStdout(), append([]sqlite.Setting{}, history...))
			}
			if len(history) == 0 {
				cmd.Printf("nothing was ever set for %s\n", args[0])
				return nil
			}
			w := term.NewTable(cmd.OutOrStdout(), "AT", "API", "REVISION", "WHO", "CHANGE")
			for _, s := range history {
				w.Row(term.Time(s.At), s.API, s.Revision, s.Who, s.Change)
			}
			return w.Flush()
		},
	}
}
