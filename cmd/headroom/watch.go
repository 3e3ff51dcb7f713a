package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/store/sqlite"
	"headroom/internal/term"
	"headroom/jobs"
)

const (
	watchEvery = 300 * time.Millisecond // between looks at the store
	tellEvery  = 2 * time.Second        // between lines of a job whose state stays
)

func newBackfillWatch(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "watch [BACKFILL|ACCOUNT...]",
		Short: "Follow backfills until they have ended",
		Long: `Follow some backfills, or those of some accounts, or all that are under way, until
they have ended or are paused: with progress bars on a terminal, with a line for every
change otherwise, with a JSON object for every change with --json. It shows how much
is done, how long the rest takes, and what a backfill waits for. Only the store is
read; the backfills go on when the watching stops.

Exit codes: 0 all complete, 1 one failed, is blocked, paused or cancelled, 2 wrong
usage or settings, 130 interrupted while one was still under way.`,
		Example: "  headroom backfill watch ann@example.com",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(cmd, g, func(ctx context.Context, s *sqlite.Store) error {
				all, err := watched(ctx, s, args)
				if err != nil {
					return err
				}
				if len(all) == 0 {
					cmd.PrintErrln("no backfill is under way")
					return nil
				}
				v := newView(cmd, g.json, all)
				cfg, err := g.load()
				if err != nil {
					return err
				}
				all, err = watch(ctx, s, cfg, all, v, func() error { return term.Err(cmd.OutOrStdout()) })
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
	case term.IsTerminal(cmd.OutOrStdout()):
		return newBars(cmd.OutOrStdout(), all)
	}
	return &lines{out: cmd.OutOrStdout(), told: map[string]told{}}
}

// watched are the jobs that were asked for, or all live ones.
func watched(ctx context.Context, s *sqlite.Store, names []string) ([]jobs.Job, error) {
	if len(names) == 0 {
		all, err := s.LiveJobs(ctx)
		return backfillsOnly(all), err
	}
	var all []jobs.Job
	seen := map[string]bool{}
	for _, name := range names {
		named, err := app.Backfills(ctx, s, name)
		if err != nil {
			return nil, err
		}
		for _, j := range named {
			if !seen[j.ID] {
				seen[j.ID] = true
				all = append(all, j)
			}
		}
	}
	return all, nil
}

// watch shows the jobs until all have ended, and returns their last rows. It stops
// when what it shows does not arrive.
func watch(ctx context.Context, s *sqlite.Store, cfg config.Config, all []jobs.Job, v view, unprinted func() error) ([]jobs.Job, error) {
	speeds := make([]app.Speed, len(all))
	for i, j := range all {
		speeds[i] = app.NewSpeed(cfg, j.Project)
	}
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
			if j.State.Live() {
				live++
			}
		}
		if err := unprinted(); err != nil {
			return nil, err
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
			errs = append(errs, fmt.Errorf("%s is %s: %s; %s", j.ID, j.State, j.LastError, nextStep(j)))
		case jobs.Paused, jobs.Cancelled:
			errs = append(errs, fmt.Errorf("%s is %s; %s", j.ID, j.State, nextStep(j)))
		}
	}
	return errors.Join(errs...)
}

// nextStep says how a job that rests goes on.
func nextStep(j jobs.Job) string {
	switch {
	case j.State == jobs.Paused:
		return "resume it with: headroom backfill resume " + nameOf(j)
	case j.State == jobs.Blocked:
		return "when the account has acted, resume it with: headroom backfill resume " + nameOf(j)
	case j.ID == jobs.BackfillID(j.Account):
		return "start it again with: headroom backfill start " + j.Account
	}
	return "start it again, with the same flags as before"
}
