package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"headroom/internal/app"
	"headroom/internal/store"
	"headroom/jobs"

	"github.com/spf13/cobra"
)

const (
	watchEvery = 300 * time.Millisecond // between looks at the store
	tellEvery  = 2 * time.Second        // between lines of a job whose state stays
)

func newBackfillWatch(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "watch [EMAIL...]",
		Short: "Follow backfills until they have ended",
		Long: `Follow the backfills of some accounts, or of all that are under way, until they
have ended: with progress bars on a terminal, with a line for every change
otherwise, with a JSON object for every change with --json. It shows how much is
done, how long the rest takes, and what a backfill waits for. Only the store is
read; the backfills go on when the watching stops.

Exit codes: 0 all complete, 1 one failed, is blocked, or was still under way
when the watching was interrupted, 2 wrong usage or settings.`,
		Example: "  headroom backfill watch ann@example.com",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(cmd, g, func(ctx context.Context, s *store.Store) error {
				all, err := watched(ctx, s, args)
				if err != nil {
					return err
				}
				if len(all) == 0 {
					cmd.PrintErrln("no backfill is under way")
					return nil
				}
				v := newView(cmd, g.json, all)
				all, err = watch(ctx, s, all, v)
				v.close()
				if err != nil {
					return err
				}
				return ended(all)
			})
		},
	}
}

// view shows jobs as they change.
type view interface {
	show(j jobs.Job, s *app.Speed)
	close()
}

func newView(cmd *cobra.Command, asJSON bool, all []jobs.Job) view {
	switch {
	case asJSON:
		return jsonView{cmd, map[string]jobs.Job{}}
	case app.IsTerminal(cmd.OutOrStdout()):
		return newBars(cmd.OutOrStdout(), all)
	}
	return &lines{out: cmd.OutOrStdout(), told: map[string]told{}}
}

// watched are the jobs that were asked for, or all live ones.
func watched(ctx context.Context, s *store.Store, names []string) ([]jobs.Job, error) {
	if len(names) == 0 {
		return s.LiveJobs(ctx)
	}
	var all []jobs.Job
	seen := map[string]bool{}
	for _, name := range names {
		j, err := backfillOf(ctx, s, name)
		if err != nil {
			return nil, err
		}
		if !seen[j.ID] {
			seen[j.ID] = true
			all = append(all, j)
		}
	}
	return all, nil
}

// watch shows the jobs until all have ended, and returns their last rows.
func watch(ctx context.Context, s *store.Store, all []jobs.Job, v view) ([]jobs.Job, error) {
	speeds := make([]app.Speed, len(all))
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		live := 0
		for i := range all {
			j, err := s.Job(ctx, all[i].ID)
			if interrupted(ctx, err) {
				return nil, errStopped
			}
			if err != nil {
				return nil, err
			}
			all[i] = j
			speeds[i].Look(time.Now(), j)
			v.show(j, &speeds[i])
			if !j.State.Terminal() {
				live++
			}
		}
		if live == 0 {
			return all, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, errStopped
		}
	}
}

var errStopped = errors.New("stopped watching; the backfill goes on by itself")

// ended is the error of the jobs that did not complete.
func ended(all []jobs.Job) error {
	var errs []error
	for _, j := range all {
		switch j.State {
		case jobs.Failed, jobs.Blocked:
			errs = append(errs, fmt.Errorf("%s is %s: %s; start it again with: headroom backfill start %s", j.ID, j.State, j.LastError, j.Account))
		}
	}
	return errors.Join(errs...)
}
