package main

import (
	"github.com/spf13/cobra"

	"headroom/internal/app"
)

func newRun(g *globals) *cobra.Command {
	var names []string
	cmd := &cobra.Command{
		Use:         "run",
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
