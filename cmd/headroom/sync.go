package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"headroom/internal/control"
	"headroom/internal/term"
	"headroom/jobs"
)

// synced is a live sync that was asked for, and with --watch how it ended.
type synced struct {
	control.SyncAsked
	Cursor *jobs.Cursor `json:"cursor,omitempty"`
}

func newSync(g *globals) *cobra.Command {
	var watch bool
	cmd := g.command("sync ACCOUNT", cobra.ExactArgs(1), func(ctx context.Context, cmd *cobra.Command, c *control.Control, args []string) error {
		asked, err := c.StartSync(ctx, args[0])
		if err != nil {
			return err
		}
		if !watch {
			return printResult(cmd, g, synced{SyncAsked: asked}, text(func(s synced) string { return askedText(s.SyncAsked) }))
		}
		var cursor jobs.Cursor
		done, err := followSync(ctx, cmd, c, asked, func() (waiting bool, err error) {
			cursor, err = c.Cursor(ctx, asked.Job.Account)
			return !cursor.AskedAt.IsZero(), err
		})
		if err != nil {
			return err
		}
		return printResult(cmd, g, synced{done, &cursor}, text(func(s synced) string { return syncedText(s, asked.Job.Progress) }))
	})
	cmd.Flags().BoolVar(&watch, "watch", false, "wait until it is done, and show what it fetched")
	return cmd
}

func askedText(asked control.SyncAsked) string {
	if asked.Started {
		return "started " + asked.Job.ID
	}
	return "under way already, and to be followed by another: " + asked.Job.ID
}

// followSync waits until the sync that was asked for has ended and has completed.
// waiting reports whether another one waits to begin.
func followSync(ctx context.Context, cmd *cobra.Command, c *control.Control, asked control.SyncAsked, waiting func() (bool, error)) (control.SyncAsked, error) {
	waits := syncWaits{out: cmd.ErrOrStderr()}
	err := poll(ctx, func() (bool, error) {
		j, err := c.Job(ctx, asked.Job.ID)
		if err != nil {
			return false, err
		}
		more, err := waiting()
		if err != nil {
			return false, err
		}
		asked.Job = j
		if j.State == jobs.Paused {
			return false, fmt.Errorf("%s is paused, and what was asked for waits; resume it with: headroom backfill resume %s", j.ID, j.ID)
		}
		waits.tell(j)
		return j.State.Terminal() && !more, nil
	})
	switch j := asked.Job; {
	case err != nil && ctx.Err() != nil:
		return asked, errors.New("stopped watching; the sync goes on by itself")
	case err != nil:
		return asked, err
	case j.State != jobs.Completed && (j.State != jobs.CompletedWithFailures || j.Kind == jobs.CalendarSync):
		return asked, fmt.Errorf("%s is %s: %s", j.ID, j.State, j.LastError)
	}
	return asked, nil
}

// A syncWaits tells what a watched sync waits for: once for each reason, so that nobody
// takes a minute of silence for a command that hangs.
type syncWaits struct {
	out  io.Writer
	told string
}

func (w *syncWaits) tell(j jobs.Job) {
	if j.State == jobs.Waiting && j.WaitingFor != w.told {
		w.told = j.WaitingFor
		fmt.Fprintf(w.out, "%s waits for %s until %s\n", j.ID, term.Clean(j.WaitingFor), term.Time(j.WaitUntil))
	}
}

// syncedText tells what a sync has fetched since before.
func syncedText(s synced, before jobs.Progress) string {
	j, p := s.Job, s.Job.Progress
	text := fmt.Sprintf("synced %s up to history id %d: %d messages fetched", j.Account, s.Cursor.HistoryID, p.Stored-before.Stored)
	if p.Failed > 0 {
		text += fmt.Sprintf(", %d could not be; see headroom backfill show %s", p.Failed, j.ID)
	}
	if c := s.Cursor; c.Snapshot.Phase != "" {
		text += fmt.Sprintf("\nthe mailbox is yet to be read as a whole: %s; see headroom backfill show %s", c.ReconcileReason.Text(), j.ID)
	}
	return text
}
