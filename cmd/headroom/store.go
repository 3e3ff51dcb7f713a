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

func newStoreTakeQueues(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:  "take-queues",
		Args: arguments(cobra.NoArgs),
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
		Use:  "check",
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
