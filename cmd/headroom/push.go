package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"headroom/internal/control"
	"headroom/internal/term"
	"headroom/jobs"
)

func newPush(g *globals) *cobra.Command {
	return group(&cobra.Command{
		Use:     "push",
		Short:   "See which changes Google pushes",
		Example: "  headroom push list ann@example.com",
	}, newPushList(g))
}

var watchTable = term.Table[jobs.Watch]{
	Columns: []string{"ACCOUNT", "KIND", "CALENDAR", "STATE", "EXPIRES", "RENEW AT", "LAST PUSH", "FAILURES", "LAST ERROR…"},
	Cells: func(w jobs.Watch) []any {
		return []any{w.Account, w.Kind, w.Calendar, w.State, term.Time(w.ExpiresAt), term.Time(w.RenewAt), term.Time(w.LastPushAt), w.Failures, w.LastError}
	},
	Empty: "Google pushes nothing yet; push in the settings turns it on, and the next sync of an account asks for it",
}

func newPushList(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "list [ACCOUNT]",
		Short: "List watches, until when each lasts and what has failed",
		Long: `List the watches that Google was asked for: for each mailbox, list of calendars and
calendar whether Google pushes changes now and until when, when the watch is renewed,
when Google last pushed a change, how often in a row renewal has failed, and why. A
watch that has lapsed is made again by the next sync, which also finds the changes
that were not pushed. Moments are in the local time zone, with --json in UTC.

Exit codes: 0 listed, 1 failed, 2 wrong usage or settings.`,
		Example: "  headroom push list ann@example.com\n  headroom push list --json",
		Args:    arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.operate(cmd, func(ctx context.Context, c *control.Control) error {
				all, err := c.Watches(ctx, strings.Join(args, ""), jobs.WatchKey{}, 0)
				if err != nil {
					return err
				}
				return watchTable.Print(cmd.OutOrStdout(), g.json, all)
			})
		},
	}
}
