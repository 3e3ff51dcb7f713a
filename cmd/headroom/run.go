package main

import (
	"github.com/spf13/cobra"

	"headroom/internal/app"
)

func newRun(g *globals) *cobra.Command {
	var names []string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the scheduler, the workers and the web pages",
		Long: `Run the parts of Headroom in this process until it is told to stop, all or those
that --roles names: the scheduler, which runs what is due by schedule, decides which
backfills are at work, and puts lost work back on the queue; the worker, which calls
Google and stores what it says; and web, which serves the index page, the queues, the
HTTP interface, what Google pushes, metrics and health. Any number of processes may
run any of them; one of each kind is needed.

On SIGINT or SIGTERM running slices save what they have and end within seconds.
A second signal ends the process at once; nothing is lost by it.

Exit codes: 0 stopped as asked, 1 failed, 2 wrong usage or settings.`,
		Example: `  headroom run
  headroom run --roles worker --set worker.concurrency=50`,
		Annotations: untilStopped,
		Args:        arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			roles, err := app.ParseRoles(names)
			if err != nil {
				return usagef("--roles: %w", err)
			}
			cfg, log, err := g.setUp(cmd)
			if err != nil {
				return err
			}
			a, err := app.New(cmd.Context(), cfg, app.Options{Roles: roles, Version: thisBuild().Version, Log: log})
			if err != nil {
				return err
			}
			return a.Run(cmd.Context())
		},
	}
	cmd.Flags().StringSliceVar(&names, "roles", nil, "what to run: scheduler, worker, web (default all)")
	return cmd
}
