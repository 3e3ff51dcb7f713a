package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"headroom/internal/app"
	"headroom/internal/store/sqlite"
	"headroom/internal/term"
	"headroom/jobs"
)

func newPush(g *globals) *cobra.Command {
	return group(&cobra.Command{
		Use:     "push",
		Short:   "See what Google tells of as it happens",
		Example: "  headroom push list ann@example.com",
	}, newPushList(g))
}

func newPushList(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "list [ACCOUNT]",
		Short: "List watches, until when each lasts and what has failed",
		Long: `List what Google was made to tell of: of each mailbox, list of calendars and calendar
whether Google tells of changes now and until when, when that is renewed, when it
last told of one, how often in a row renewal has failed, and why. A watch that has
lapsed is made again by the next sync, which also finds what was not told of.
Moments are in the local time zone, with --json in UTC.

Exit codes: 0 listed, 1 failed, 2 wrong usage or settings.`,
		Example: "  headroom push list ann@example.com\n  headroom push list --json",
		Args:    arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(cmd, g, func(ctx context.Context, s *sqlite.Store) error {
				cfg, err := g.load()
				if err != nil {
					return err
				}
				all, err := app.StoredWatches(ctx, cfg, s, strings.Join(args, ""), jobs.WatchKey{}, 0)
				if err != nil {
					return err
				}
				if g.json {
					return term.WriteJSON(cmd.OutOrStdout(), append([]jobs.Watch{}, all...))
				}
				return tabulateWatches(cmd.OutOrStdout(), all)
			})
		},
	}
}

func tabulateWatches(out io.Writer, all []jobs.Watch) error {
	w := term.NewTable(out, "ACCOUNT", "KIND", "CALENDAR", "STATE", "EXPIRES", "RENEW AT", "LAST PUSH", "FAILURES", "LAST ERROR…")
	for _, one := range all {
		w.Row(one.Account, one.Kind, one.Calendar, one.State,
			term.Time(one.ExpiresAt), term.Time(one.RenewAt), term.Time(one.LastPushAt), one.Failures, one.LastError)
	}
	return w.Flush()
}
