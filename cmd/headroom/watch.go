package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/spf13/cobra"

	"headroom/internal/control"
	"headroom/internal/control/progress"
	"headroom/internal/term"
	"headroom/jobs"
)

const (
	watchEvery = 300 * time.Millisecond // between looks at the store
	tellEvery  = 2 * time.Second        // between lines of a job whose state stays
)

func newBackfillWatch(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "watch [BACKFILL|ACCOUNT...]",
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.operate(cmd, func(ctx context.Context, c *control.Control) error {
				all, err := watched(ctx, c, args)
				if err != nil {
					return err
				}
				if len(all) == 0 {
					cmd.PrintErrln("no backfill is under way")
					return nil
				}
				v := newView(cmd.OutOrStdout(), g.json, all)
				all, err = watch(ctx, c, all, v, func() error { return term.Err(cmd.OutOrStdout()) })
				v.close()
				if err != nil {
					return err
				}
				return ended(all)
			})
		},
	}
}

// watched are the jobs that were asked for, or all live ones.
func watched(ctx context.Context, c *control.Control, names []string) ([]jobs.Job, error) {
	if len(names) == 0 {
		return c.AllBackfills(ctx, true)
	}
	var all []jobs.Job
	seen := map[string]bool{}
	for _, name := range names {
		named, err := c.Backfills(ctx, name)
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
// when its output cannot be written.
func watch(ctx context.Context, c *control.Control, all []jobs.Job, v view, unprinted func() error) ([]jobs.Job, error) {
	speeds := make([]progress.Speed, len(all))
	for i, j := range all {
		speeds[i] = c.Speed(j.Project)
	}
	err := poll(ctx, func() (done bool, err error) {
		live := 0
		for i := range all {
			if all[i], err = c.Job(ctx, all[i].ID); err != nil {
				return false, err
			}
			speeds[i].Look(time.Now(), all[i])
			v.show(all[i], &speeds[i])
			if all[i].State.Live() {
				live++
			}
		}
		return live == 0, unprinted()
	})
	if interrupted(ctx, err) {
		return nil, errors.New("stopped watching; the backfill goes on by itself")
	}
	return all, err
}

// poll looks at the store until look is done or fails, or ctx ends, whose error it
// returns then.
func poll(ctx context.Context, look func() (done bool, err error)) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		if done, err := look(); done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

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

// view shows jobs as they change.
type view interface {
	show(j jobs.Job, s *progress.Speed)
	close()
}

func newView(out io.Writer, asJSON bool, all []jobs.Job) view {
	if asJSON {
		return jsonView{out, map[string]jobs.Job{}}
	}
	if b := term.NewBars(out); b != nil {
		v := bars{b, map[string]*term.Bar{}}
		for _, j := range all {
			v.of[j.ID] = b.Add()
		}
		return v
	}
	return lines{out, map[string]told{}}
}

// lines prints a line when a job's state changes, and now and then between.
type lines struct {
	out  io.Writer
	last map[string]told
}

type told struct {
	state string
	done  int64
	at    time.Time
}

func (l lines) show(j jobs.Job, s *progress.Speed) {
	last, now := l.last[j.ID], told{stateText(j), j.Progress.Done(), time.Now()}
	if now.state == last.state && (now.done == last.done || now.at.Sub(last.at) < tellEvery) {
		return
	}
	l.last[j.ID] = now
	fmt.Fprintf(l.out, "%s %s %s\n", term.Time(now.at), nameOf(j), progressText(j, s))
}

func (lines) close() {}

// jsonView prints one object for each change of a row.
type jsonView struct {
	out  io.Writer
	last map[string]jobs.Job
}

func (v jsonView) show(j jobs.Job, s *progress.Speed) {
	same := j
	same.UpdatedAt, same.LeaseUntil = time.Time{}, time.Time{} // a lease renewed is no news
	if last, seen := v.last[j.ID]; seen && reflect.DeepEqual(last, same) {
		return
	}
	v.last[j.ID] = same
	change := struct {
		jobs.Job
		Done       int64    `json:"done"`
		ETASeconds *float64 `json:"eta_seconds"` // null: not known
	}{Job: j, Done: j.Progress.Done()}
	if left, known := s.ETA(j); known {
		seconds := left.Seconds()
		change.ETASeconds = &seconds
	}
	_ = term.WriteJSON(v.out, change) // the output remembers
}

func (jsonView) close() {}

// bars shows a progress bar for each job on a terminal.
type bars struct {
	all *term.Bars
	of  map[string]*term.Bar
}

func (b bars) show(j jobs.Job, s *progress.Speed) {
	one, done := b.of[j.ID], j.Progress.Done()
	n, _ := progress.Total(j)
	one.Say(nameOf(j) + ": " + doing(j, s))
	one.Set(done, n)
	if !j.State.Live() {
		one.End(done, n)
	}
}

func (b bars) close() { b.all.Close() }
