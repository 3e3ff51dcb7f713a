package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"headroom/internal/control"
	"headroom/internal/term"
	"headroom/jobs"
)

var watchTable = term.Table[jobs.Watch]{
	Columns: []string{"ACCOUNT", "KIND", "CALENDAR", "STATE", "EXPIRES", "RENEW AT", "LAST PUSH", "FAILURES", "LAST ERROR…"},
	Cells: func(w jobs.Watch) []any {
		return []any{w.Account, w.Kind, w.Calendar, w.State, term.Time(w.ExpiresAt), term.Time(w.RenewAt), term.Time(w.LastPushAt), w.Failures, w.LastError}
	},
	Empty: "Google pushes nothing yet; push in the settings turns it on, and the next sync of an account asks for it",
}

func newPushList(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:  "list [ACCOUNT]",
		Args: arguments(cobra.MaximumNArgs(1)),
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
