package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"headroom/internal/app"
	"headroom/internal/term"
	"headroom/jobs"
)

// steering is a command that steers backfills.
type steering struct {
	verb, short, long string
	queue             bool // it puts jobs on the queue
	do                func(app.Operator, context.Context, string) ([]app.Steered, error)
	done              func(jobs.Job) string                                                      // what became of a job
	all               func(app.Operator, context.Context, jobs.Selection) ([]app.Steered, error) // of many accounts; nil: only by name
}

func newBackfillPause(g *globals) *cobra.Command {
	return newSteering(g, steering{
		verb: "pause", short: "Pause backfills",
		long: `Pause a backfill, or all of an account's that can be paused. Calls to Google stop
within five seconds; what was in flight is stored, and nothing is lost. Pausing
twice is fine.`,
		do: app.Operator.Pause,
		done: func(j jobs.Job) string {
			return restText(j, "paused", "pausing") + "; go on with: headroom backfill resume " + nameOf(j)
		},
	})
}

func newBackfillResume(g *globals) *cobra.Command {
	return newSteering(g, steering{
		verb: "resume", short: "Resume backfills that are paused or blocked", queue: true,
		long: `Resume a backfill, or all of an account's that can be resumed: those that are
paused, and those that are blocked, once the account has acted. They go on where
they stopped. Resuming twice is fine. With --all those of all accounts are resumed.
What waits for a fault to pass, or for a project to be put in order, needs no
resuming.`,
		do: app.Operator.Resume, all: app.Operator.ResumeAll,
		done: func(j jobs.Job) string {
			return "resumed " + j.ID + "; follow it with: headroom backfill watch " + nameOf(j)
		},
	})
}

func newBackfillCancel(g *globals) *cobra.Command {
	return newSteering(g, steering{
		verb: "cancel", short: "Cancel backfills",
		long: `Cancel a backfill, or all of an account's that can be cancelled. Calls to Google
stop within five seconds; what was stored stays. Starting it again is another run,
which fetches only what is not stored yet. Cancelling twice is fine.`,
		do: app.Operator.Cancel,
		done: func(j jobs.Job) string {
			return restText(j, "cancelled", "cancelling") + "; what was stored stays"
		},
	})
}

// restText says whether a job has come to rest, or its owner has yet to be told.
func restText(j jobs.Job, at, coming string) string {
	if j.Wanted != "" {
		return coming + " " + j.ID + ": its worker makes no more calls within 5 s"
	}
	return at + " " + j.ID
}

func newSteering(g *globals, s steering) *cobra.Command {
	var many *allFlags
	cmd := &cobra.Command{
		Use:     s.verb + " BACKFILL|ACCOUNT",
		Short:   s.short,
		Long:    s.long + "\n\nExit codes: 0 done, or so already, 1 not possible or failed, 2 wrong usage or\nsettings.",
		Example: "  headroom backfill " + s.verb + " ann@example.com",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var chosen jobs.Selection
			if many != nil {
				var err error
				if chosen, err = many.selection(); err != nil {
					return err
				}
			}
			return withOperator(cmd, g, s.queue, func(o app.Operator) error {
				var all []app.Steered
				var err error
				if many != nil && many.all {
					all, err = s.all(o, cmd.Context(), chosen)
					defer func() {
						if !g.json {
							sayHowMany(cmd, len(all), s.verb+"d")
						}
					}()
				} else {
					all, err = s.do(o, cmd.Context(), args[0])
				}
				if g.json && (len(all) > 0 || many != nil && many.all) {
					return errors.Join(term.WriteJSON(cmd.OutOrStdout(), append([]app.Steered{}, all...)), err)
				}
				for _, one := range all {
					already := ""
					if !one.Changed {
						already = "already so: "
					}
					cmd.Println(already + s.done(one.Job))
				}
				return err
			})
		},
	}
	if s.all != nil {
		cmd.Use = s.verb + " BACKFILL|ACCOUNT | --all"
		many = addAllFlags(cmd, s.verb)
	}
	return cmd
}

func newBackfillRetryFailed(g *globals) *cobra.Command {
	var f *failureFlags
	var many *allFlags
	cmd := &cobra.Command{
		Use:     "retry-failed BACKFILL|ACCOUNT | --all",
		Aliases: []string{"retry"},
		Short:   "Try again what a backfill gave up",
		Long: `Try again the messages that a backfill, or all of an account's, gave up: all of
them, or those that the flags choose. Nothing else is fetched or listed. An entry
leaves the failure list when its message is stored. A backfill that has completed
is queued again; of one that failed or was cancelled, start another run.

Exit codes: 0 done, or there was nothing to retry, 1 not possible or failed, 2
wrong usage or settings.`,
		Example: `  headroom backfill retry-failed ann@example.com
  headroom backfill retry-failed ann@example.com --reason backendError`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.filter()
			if err != nil {
				return err
			}
			chosen, err := many.selection()
			if err != nil {
				return err
			}
			return withOperator(cmd, g, true, func(o app.Operator) error {
				var all []app.Retried
				var err error
				if many.all {
					all, err = o.RetryAll(cmd.Context(), chosen, filter)
				} else {
					all, err = o.RetryFailed(cmd.Context(), args[0], filter)
				}
				if g.json && (len(all) > 0 || many.all) {
					return errors.Join(term.WriteJSON(cmd.OutOrStdout(), append([]app.Retried{}, all...)), err)
				}
				for _, one := range all {
					next := "follow it with: headroom backfill watch " + nameOf(one.Job)
					if one.Job.State == jobs.Paused {
						next = "it is paused; go on with: headroom backfill resume " + nameOf(one.Job)
					}
					if one.Retried == 0 {
						next = "headroom backfill failures " + nameOf(one.Job) + " lists what there is"
					}
					cmd.Printf("%d messages of %s are tried again; %s\n", one.Retried, one.Job.ID, next)
				}
				if many.all {
					sayHowMany(cmd, len(all), "retried")
				}
				return err
			})
		},
	}
	f = addFailureFlags(cmd)
	many = addAllFlags(cmd, "retry")
	flags := cmd.Flags()
	flags.StringArrayVar(&f.ids, "id", nil, fmt.Sprintf("only the message with `ID`; may be repeated, up to %d times", jobs.MaxFailureIDs))
	return cmd
}

// withOperator opens what a command needs that steers.
func withOperator(cmd *cobra.Command, g *globals, queue bool, do func(app.Operator) error) error {
	cfg, log, err := g.setUp(cmd)
	if err != nil {
		return err
	}
	return app.WithOperator(cmd.Context(), cfg, queue, log, do)
}
