package main

import (
	"github.com/spf13/cobra"

	"headroom/internal/app"
	"headroom/internal/term"
)

func newStore(g *globals) *cobra.Command {
	return group(&cobra.Command{
		Use:     "store",
		Short:   "Check and repair the store, and let it have its queues",
		Example: "  headroom store check",
	}, newStoreCheck(g), newStoreTakeQueues(g))
}

func newStoreTakeQueues(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "take-queues",
		Short: "Let this store have queues that belong to another, which is gone",
		Long: `Let the store of the settings have the queues of the settings' Redis. They belong
to the first store that used them, and no other may while there are tasks in them:
its workers would drop the tasks of jobs that they do not know. This is for a store
that is gone. Its tasks are dropped; a store that is not gone loses nothing, and puts
them on its queues again when it has some.

Exit codes: 0 done, 1 failed, also when a process of the other store runs, 2 wrong
usage or settings, 130 interrupted.`,
		Example: "  headroom store take-queues",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, log, err := g.setUp(cmd)
			if err != nil {
				return err
			}
			if err := app.TakeQueues(cmd.Context(), cfg, log); err != nil {
				return err
			}
			if g.json {
				return term.WriteJSON(cmd.OutOrStdout(), map[string]string{"store": cfg.Store.Path, "redis": cfg.Redis.URL.String()})
			}
			cmd.Printf("the queues at %s belong to %s\n", cfg.Redis.URL, cfg.Store.Path)
			return nil
		},
	}
}
