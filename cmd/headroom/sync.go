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

// synced is a live sync that was asked for, and with --watch how it ended.
type synced struct {
	app.SyncAsked
	Cursor *jobs.Cursor `json:"cursor,omitempty"`
}

func newSync(g *globals) *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "sync ACCOUNT",
		Short: "Bring what has changed in a mailbox now",
		Long: `Bring what has changed in a mailbox since its last sync: new messages, deletions
and labels. A running scheduler does so by itself, every sync.interval and when a
backfill ends; this asks for it now, in lane sync, beside a backfill that may be
under way. It needs a backfill of the whole mailbox to have begun. One that is
under way already is followed by another.

Exit codes: 0 asked for (with --watch: done), 1 failed, 2 wrong usage or settings,
130 interrupted.`,
		Example: "  headroom sync ann@example.com --watch",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, log, err := g.setUp(cmd)
			if err != nil {
				return err
			}
			asked, err := app.StartSync(cmd.Context(), cfg, args[0], log)
			if err != nil {
				return err
			}
			if watch {
				return withStore(cmd, g, func(ctx context.Context, s *sqlite.Store) error { return followSync(ctx, cmd, g, s, asked) })
			}
			if g.json {
				return term.WriteJSON(cmd.OutOrStdout(), synced{SyncAsked: asked})
			}
			what := "started"
			if !asked.Started {
				what = "under way already, and to be followed by another:"
			}
			cmd.Printf("%s %s\n", what, asked.Job.ID)
			return nil
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "wait until it is done, and say what it brought")
	return cmd
}

// followSync waits until the sync that was asked for has ended, and tells how.
func followSync(ctx context.Context, cmd *cobra.Command, g *globals, s *sqlite.Store, asked app.SyncAsked) error {
	before := asked.Job.Progress
	waits := syncWaits{cmd: cmd}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		job, err := s.Job(ctx, asked.Job.ID)
		if err != nil && !interrupted(ctx, err) {
			return err
		}
		cursor, err := s.Cursor(ctx, job.Account)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil && job.State.Terminal() && cursor.AskedAt.IsZero() {
			return tellSync(cmd, g, synced{app.SyncAsked{Job: job, Started: asked.Started}, &cursor}, before)
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

// A syncWaits tells on stderr what a watched sync waits for: once for each reason, so
// that nobody takes a minute of silence for a command that hangs.
type syncWaits struct {
	cmd  *cobra.Command
	told string
}

func (w *syncWaits) tell(j jobs.Job) {
	if j.State != jobs.Waiting || j.WaitingFor == w.told {
		return
	}
	w.told = j.WaitingFor
	w.cmd.PrintErrf("%s waits for %s until %s\n", j.ID, term.Clean(j.WaitingFor), term.Time(j.WaitUntil))
}

// pausedSync says of a sync that it goes on only when somebody says so.
func pausedSync(j jobs.Job) error {
	return fmt.Errorf("%s is paused, and what was asked for waits; resume it with: headroom backfill resume %s", j.ID, j.ID)
}

func tellSync(cmd *cobra.Command, g *globals, done synced, before jobs.Progress) error {
	j, p := done.Job, done.Job.Progress
	if j.State != jobs.Completed && j.State != jobs.CompletedWithFailures {
		return fmt.Errorf("%s is %s: %s", j.ID, j.State, j.LastError)
	}
	if g.json {
		return term.WriteJSON(cmd.OutOrStdout(), done)
	}
	cmd.Printf("synced %s up to history id %d: %d messages fetched", j.Account, done.Cursor.HistoryID, p.Stored-before.Stored)
	if p.Failed > 0 {
		cmd.Printf(", %d could not be; see headroom backfill show %s", p.Failed, j.ID)
	}
	cmd.Println()
	if c := done.Cursor; c.Snapshot.Phase != "" {
		cmd.Printf("the mailbox is yet to be read as a whole: %s; see headroom backfill show %s\n", c.ReconcileReason.Text(), j.ID)
	}
	return nil
}
