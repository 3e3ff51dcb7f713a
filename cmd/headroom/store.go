package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"headroom/internal/control"
	"headroom/internal/term"
)

func newStore(g *globals) *cobra.Command {
	return group(&cobra.Command{
		Use:     "store",
		Short:   "Check and repair the store, and give it its queues",
		Example: "  headroom store check",
	}, newStoreCheck(g), newStoreTakeQueues(g))
}

func newStoreTakeQueues(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "take-queues",
		Short: "Give this store the queues of another one that is gone",
		Long: `Give the store of the settings the queues of the settings' Redis. They belong to the
first store that used them, and no other store may use them while there are tasks in
them: its workers would drop the tasks of jobs that they do not know. Use this when
that store is gone. Its tasks are dropped; a store that is not gone loses nothing, and
puts them on its queues again when it has some.

Exit codes: 0 done, 1 failed, also when a process of the other store runs, 2 wrong
usage or settings, 130 interrupted.`,
		Example: "  headroom store take-queues",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.operate(cmd, func(ctx context.Context, c *control.Control) error {
				if err := c.TakeQueues(ctx); err != nil {
					return err
				}
				store, redis := g.cfg.Store.Path, g.cfg.Redis.URL.String()
				return g.printf(cmd, map[string]string{"store": store, "redis": redis}, "the queues at %s belong to %s\n", redis, store)
			})
		},
	}
}

func newStoreCheck(g *globals) *cobra.Command {
	var repair bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Read all stored bodies and compare them with the rows",
		Long: `Read all bodies of messages and attachments in the blob folder, and list those that
are missing or differ from what was stored, and files that no row refers to. Processes
may use the store meanwhile; files younger than an hour are not counted as without a
row.

With --repair, bodies that are lost are fetched again by backfills of their accounts,
under the same quota as everything they fetch: follow them with headroom backfill
watch. A message that Google no longer has ends as gone. Damaged files are moved to the
folder damaged beside the other blobs, and files without a row are removed. Until its
body is there again, a message is listed as one whose body is not stored.

Exit codes: 0 nothing is wrong (with --repair: or all is repaired or being fetched),
1 something is, or the check failed, 2 wrong usage or settings, 130 interrupted.`,
		Example: `  headroom store check
  headroom store check --repair --json`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.operate(cmd, func(ctx context.Context, c *control.Control) error {
				bars := term.NewBars(cmd.ErrOrStderr())
				found, err := c.CheckStore(ctx, repair, bars.AddTimed("blobs").Set)
				bars.Close()
				if err != nil {
					return err
				}
				if err := g.print(cmd, found, func(out io.Writer) error { return writeStoreCheck(out, found) }); err != nil {
					return err
				}
				return storeVerdict(found)
			})
		},
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "fetch again what is lost, and remove files without a row")
	return cmd
}

// storeVerdict is the error of a store with which something is wrong.
func storeVerdict(c control.StoreCheck) error {
	switch {
	case c.OK():
		return nil
	case c.Repair != nil:
		first := c.Repair.Left[0]
		return fmt.Errorf("%d messages are not fetched again, the first is %s of %s: %s", len(c.Repair.Left), first.Message, first.Account, first.Reason)
	}
	return errors.New("the store is damaged; run: headroom store check --repair")
}

func writeStoreCheck(out io.Writer, c control.StoreCheck) error {
	lost := func(what, account, message, format, part, sum string) {
		if part != "" {
			part = ", attachment " + part
		}
		fmt.Fprintf(out, "%s  %s %s (%s%s)  %s\n", what, account, message, format, part, sum)
	}
	for _, b := range c.Missing {
		lost("missing", b.Account, b.Message, string(b.Format), b.Part, b.SHA256)
	}
	for _, b := range c.Damaged {
		lost("damaged", b.Account, b.Message, string(b.Format), b.Part, b.SHA256)
	}
	for _, b := range c.Unreferenced {
		fmt.Fprintf(out, "no row   %s (%s)\n", b.Path, bytesText(b.Bytes))
	}
	_, err := fmt.Fprintf(out, "%d blobs (%s) read: %d bodies missing, %d damaged, %d files without a row\n",
		c.Blobs, bytesText(c.Bytes), len(c.Missing), len(c.Damaged), len(c.Unreferenced))
	if r := c.Repair; r != nil {
		_, err = fmt.Fprintf(out, "%d messages are being fetched again, %d damaged files were set aside, %d files removed\n", r.Fetching, r.SetAside, r.Removed)
		if len(r.Jobs) > 0 {
			_, err = fmt.Fprintf(out, "by %s\n", strings.Join(r.Jobs, ", "))
		}
	}
	return err
}
