package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"headroom/internal/app"
	"headroom/internal/store/sqlite"
	"headroom/internal/term"
	"headroom/jobs"
)

func newCalendar(g *globals) *cobra.Command {
	return group(&cobra.Command{
		Use:     "calendar",
		Short:   "Keep calendars in step, read and export them",
		Example: "  headroom calendar sync ann@example.com --watch",
	}, newCalendarList(g), newCalendarEvents(g), newCalendarExport(g), newCalendarSync(g))
}

// calendarsSynced is a sync of calendars that was asked for, and with --watch how
// it ended.
type calendarsSynced struct {
	app.SyncAsked
	Calendars []jobs.Calendar `json:"calendars,omitempty"`
}

func newCalendarSync(g *globals) *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "sync ACCOUNT",
		Short: "Bring an account's calendars into step now",
		Long: `Bring an account's calendars into step: its list of calendars, and of each what has
changed since the last sync, or all of it the first time. What is read as a whole
goes in lane backfill, so that it never takes the quota of people; what has changed,
in lane sync. A calendar that cannot be read is marked, and the others go on. A sync
that is under way already is followed by another.

Exit codes: 0 asked for (with --watch: done), 1 failed, 2 wrong usage or settings,
130 interrupted.`,
		Example: "  headroom calendar sync ann@example.com --watch",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, log, err := g.setUp(cmd)
			if err != nil {
				return err
			}
			asked, err := app.StartCalendarSync(cmd.Context(), cfg, args[0], log)
			if err != nil {
				return err
			}
			if watch {
				return withStore(cmd, g, func(ctx context.Context, s *sqlite.Store) error { return followCalendars(ctx, cmd, g, s, asked) })
			}
			if g.json {
				return term.WriteJSON(cmd.OutOrStdout(), calendarsSynced{SyncAsked: asked})
			}
			what := "started"
			if !asked.Started {
				what = "under way already, and to be followed by another:"
			}
			cmd.Printf("%s %s\n", what, asked.Job.ID)
			return nil
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "wait until it is done, and say how it ended")
	return cmd
}

// followCalendars waits until the sync that was asked for has ended, and tells how.
func followCalendars(ctx context.Context, cmd *cobra.Command, g *globals, s *sqlite.Store, asked app.SyncAsked) error {
	waits := syncWaits{cmd: cmd}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		job, err := s.Job(ctx, asked.Job.ID)
		if err != nil && !interrupted(ctx, err) {
			return err
		}
		list, err := s.CalendarList(ctx, job.Account)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil && job.State.Terminal() && list.AskedAt.IsZero() {
			all, err := s.Calendars(ctx, job.Account)
			if err != nil {
				return err
			}
			return tellCalendars(cmd, g, calendarsSynced{app.SyncAsked{Job: job, Started: asked.Started}, all})
		}
		if err == nil && job.State == jobs.Paused {
			return pausedSync(job)
		}
		if err == nil {
			waits.tell(job)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New("stopped watching; the sync goes on by itself")
		}
	}
}

func tellCalendars(cmd *cobra.Command, g *globals, done calendarsSynced) error {
	if j := done.Job; j.State != jobs.Completed {
		return fmt.Errorf("%s is %s: %s", j.ID, j.State, j.LastError)
	}
	if g.json {
		return term.WriteJSON(cmd.OutOrStdout(), done)
	}
	synced := 0
	for _, c := range done.Calendars {
		if c.State == jobs.CalendarSynced {
			synced++
		}
	}
	cmd.Printf("synced %d of %d calendars of %s\n", synced, len(done.Calendars), done.Job.Account)
	for _, c := range done.Calendars {
		if c.State != jobs.CalendarSynced {
			cmd.Printf("  %s is %s: %s\n", term.Clean(c.ID), c.State, term.Clean(c.Reason))
		}
	}
	return nil
}
