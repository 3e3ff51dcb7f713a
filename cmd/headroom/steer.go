package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"headroom/internal/control"
	"headroom/jobs"
)

// A steeringVerb is a command that steers backfills.
type steeringVerb struct {
	verb string
	do   func(*control.Control, context.Context, string) ([]control.Steered, error)
	done func(jobs.Job) string                                                              // what became of a job
	all  func(*control.Control, context.Context, jobs.Selection) ([]control.Steered, error) // of many accounts; nil: only by name
}

func newBackfillPause(g *globals) *cobra.Command {
	return newSteering(g, steeringVerb{
		verb: "pause",
		do:   (*control.Control).Pause,
		done: func(j jobs.Job) string {
			return restText(j, "paused", "pausing") + "; go on with: headroom backfill resume " + nameOf(j)
		},
	})
}

func newBackfillResume(g *globals) *cobra.Command {
	return newSteering(g, steeringVerb{
		verb: "resume",
		do:   (*control.Control).Resume, all: (*control.Control).ResumeAll,
		done: func(j jobs.Job) string {
			return "resumed " + j.ID + "; follow it with: headroom backfill watch " + nameOf(j)
		},
	})
}

func newBackfillCancel(g *globals) *cobra.Command {
	return newSteering(g, steeringVerb{
		verb: "cancel",
		do:   (*control.Control).Cancel,
		done: func(j jobs.Job) string {
			return restText(j, "cancelled", "cancelling") + "; what was stored stays"
		},
	})
}

// restText says whether a job has come to rest, or its worker has yet to stop.
func restText(j jobs.Job, at, coming string) string {
	if j.Wanted != "" {
		return coming + " " + j.ID + ": its worker makes no more calls within 5 s"
	}
	return at + " " + j.ID
}

func newSteering(g *globals, s steeringVerb) *cobra.Command {
	many := new(allFlags)
	cmd := g.command(s.verb+" BACKFILL|ACCOUNT", cobra.ExactArgs(1), func(ctx context.Context, cmd *cobra.Command, c *control.Control, args []string) error {
		chosen, err := many.selection()
		if err != nil {
			return err
		}
		var all []control.Steered
		if many.all {
			all, err = s.all(c, ctx, chosen)
		} else {
			all, err = s.do(c, ctx, args[0])
		}
		return printSteered(cmd, g, all, err, many.all, s.verb+"d", func(one control.Steered) string {
			if !one.Changed {
				return "already so: " + s.done(one.Job)
			}
			return s.done(one.Job)
		})
	})
	if s.all != nil {
		cmd.Use = s.verb + " BACKFILL|ACCOUNT | --all"
		many = addAllFlags(cmd, s.verb)
	}
	return cmd
}

// printSteered prints what was done to each backfill, and of many how many they are.
func printSteered[T any](cmd *cobra.Command, g *globals, all []T, err error, many bool, done string, line func(T) string) error {
	if g.json && len(all) == 0 && !many {
		return err
	}
	return errors.Join(printResult(cmd, g, append([]T{}, all...), func(out io.Writer, all []T) error {
		for _, one := range all {
			fmt.Fprintln(out, line(one))
		}
		if many {
			return sayHowMany(out, len(all), done)
		}
		return nil
	}), err)
}

func sayHowMany(out io.Writer, n int, done string) (err error) {
	switch n {
	case 0:
		_, err = fmt.Fprintln(out, "no backfill was to be "+done)
	case 1:
		_, err = fmt.Fprintln(out, "1 backfill "+done)
	default:
		_, err = fmt.Fprintf(out, "%d backfills %s\n", n, done)
	}
	return err
}

func newBackfillRetryFailed(g *globals) *cobra.Command {
	var f *failureFlags
	var many *allFlags
	cmd := g.command("retry-failed BACKFILL|ACCOUNT | --all", cobra.ExactArgs(1), func(ctx context.Context, cmd *cobra.Command, c *control.Control, args []string) error {
		filter, err := f.filter()
		if err != nil {
			return err
		}
		chosen, err := many.selection()
		if err != nil {
			return err
		}
		var all []control.Retried
		if many.all {
			all, err = c.RetryAll(ctx, chosen, filter)
		} else {
			all, err = c.RetryFailed(ctx, args[0], filter)
		}
		return printSteered(cmd, g, all, err, many.all, "retried", retriedText)
	})
	cmd.Aliases = []string{"retry"}
	f = addFailureFlags(cmd)
	many = addAllFlags(cmd, "retry")
	cmd.Flags().StringArrayVar(&f.ids, "id", nil, fmt.Sprintf("only the message with `ID`; may be repeated, up to %d times", jobs.MaxFailureIDs))
	return cmd
}

func retriedText(r control.Retried) string {
	next := "follow it with: headroom backfill watch " + nameOf(r.Job)
	if r.Job.State == jobs.Paused {
		next = "it is paused; go on with: headroom backfill resume " + nameOf(r.Job)
	}
	if r.Retried == 0 {
		next = "headroom backfill failures " + nameOf(r.Job) + " lists what there is"
	}
	return fmt.Sprintf("%d messages of %s are tried again; %s", r.Retried, r.Job.ID, next)
}
