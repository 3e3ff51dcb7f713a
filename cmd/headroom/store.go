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
	type owned struct {
		Redis string `json:"redis"`
		Store string `json:"store"`
	}
	return show(g, "take-queues", cobra.NoArgs, func(ctx context.Context, c *control.Control, _ []string) (owned, error) {
		return owned{g.cfg.Redis.URL.String(), g.cfg.Store.Path}, c.TakeQueues(ctx)
	}, text(func(o owned) string { return fmt.Sprintf("the queues at %s belong to %s", o.Redis, o.Store) }))
}

func newStoreCheck(g *globals) *cobra.Command {
	var repair bool
	cmd := g.command("check", cobra.NoArgs, func(ctx context.Context, cmd *cobra.Command, c *control.Control, _ []string) error {
		bars := term.NewBars(cmd.ErrOrStderr())
		found, err := c.CheckStore(ctx, repair, bars.AddTimed("blobs").Set)
		bars.Close()
		if err != nil {
			return err
		}
		if err := printResult(cmd, g, found, writeStoreCheck); err != nil {
			return err
		}
		return storeVerdict(found)
	})
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
