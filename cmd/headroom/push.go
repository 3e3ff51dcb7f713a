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
	return list(g, "list [ACCOUNT]", cobra.MaximumNArgs(1), watchTable, func(ctx context.Context, c *control.Control, args []string) ([]jobs.Watch, error) {
		return c.Watches(ctx, strings.Join(args, ""), jobs.WatchKey{}, 0)
	})
}
