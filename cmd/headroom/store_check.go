package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"headroom/internal/app"
	"headroom/internal/store/sqlite"
	"headroom/internal/term"
)

func newStoreCheck(g *globals) *cobra.Command {
	var repair bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Read all stored bodies and hold them to the rows",
		Long: `Read all bodies of messages and attachments in the blob folder, and list those that
are missing or are not what was stored, and files that no row refers to. Others may
use the store meanwhile; files younger than an hour are not counted as without a row.

With --repair, bodies that are lost are fetched again by backfills of their accounts,
under the same quota as all they fetch: follow them with headroom backfill watch. A
message that Google no longer has ends as gone. Damaged files are moved to the folder
damaged beside the other blobs, and files without a row are removed. Until its body is
there again, a message is listed as one whose body is not stored.

Exit codes: 0 nothing is wrong (with --repair: or all is repaired or being fetched),
1 something is, or the check failed, 2 wrong usage or settings, 130 interrupted.`,
		Example: `  headroom store check
  headroom store check --repair --json`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, log, err := g.setUp(cmd)
			if err != nil {
				return err
			}
			bars := term.NewBars(cmd.ErrOrStderr())
			c, err := app.CheckStore(cmd.Context(), cfg, repair, log, bars.AddTimed("blobs").Set)
			bars.Close()
			if err != nil {
				return err
			}
			if g.json {
				if err := term.WriteJSON(cmd.OutOrStdout(), c); err != nil {
					return err
				}
			} else {
				printStoreCheck(cmd, c)
			}
			return storeVerdict(c)
		},
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "fetch again what is lost, and remove files without a row")
	return cmd
}

// storeVerdict is the error of a store with which something is wrong.
func storeVerdict(c app.StoreCheck) error {
	switch {
	case c.OK():
		return nil
	case c.Repair != nil:
		first := c.Repair.Left[0]
		return fmt.Errorf("%d messages are not fetched again, the first is %s of %s: %s", len(c.Repair.Left), first.Message, first.Account, first.Reason)
	}
	return errors.New("the store is damaged; run: headroom store check --repair")
}

func printStoreCheck(cmd *cobra.Command, c app.StoreCheck) {
	list := func(what string, all []sqlite.Body) {
		for _, b := range all {
			part := ""
			if b.Part != "" {
				part = ", attachment " + b.Part
			}
			cmd.Printf("%s  %s %s (%s%s)  %s\n", what, b.Account, b.Message, b.Format, part, b.SHA256)
		}
	}
	list("missing", c.Missing)
	list("damaged", c.Damaged)
	for _, b := range c.Unreferenced {
		cmd.Printf("no row   %s (%s)\n", b.Path, humanize.IBytes(uint64(max(0, b.Bytes))))
	}
	cmd.Printf("%d blobs (%s) read: %d bodies missing, %d damaged, %d files without a row\n", c.Blobs, humanize.IBytes(uint64(max(0, c.Bytes))),
		len(c.Missing), len(c.Damaged), len(c.Unreferenced))
	if r := c.Repair; r != nil {
		cmd.Printf("%d messages are being fetched again, %d damaged files were set aside, %d files removed\n", r.Fetching, r.SetAside, r.Removed)
		if len(r.Jobs) > 0 {
			cmd.Printf("by %s\n", strings.Join(r.Jobs, ", "))
		}
	}
}
