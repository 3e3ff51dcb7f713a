package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"headroom/internal/app"
	"headroom/internal/export"
	"headroom/internal/store/sqlite"
	"headroom/internal/term"
	"headroom/jobs"
)

// The formats of an export.
const (
	formatMbox = "mbox"
	formatEML  = "eml"
)

// exportFlags say how and where to.
type exportFlags struct {
	format, out string
	overwrite   bool
}

func (f exportFlags) check() error {
	switch {
	case f.format != formatMbox && f.format != formatEML:
		return usagef("--format %q is none; there are mbox and eml", f.format)
	case f.out == "":
		return usagef("--out is missing: the file of an mbox, or the folder of eml files")
	case f.format == formatEML && f.out == "-":
		return usagef("eml files need a folder; name it with --out, or use --format mbox")
	case f.format == formatEML && f.overwrite:
		return usagef("--overwrite is for an mbox; eml files that are whole are left alone")
	}
	return nil
}

func newMessagesExport(g *globals) *cobra.Command {
	var f *messageFlags
	var to exportFlags
	cmd := &cobra.Command{
		Use:   "export ACCOUNT --out FILE|FOLDER",
		Short: "Write stored messages to an mbox or to eml files",
		Long: `Write the messages of an account that are stored to files for other programs.

mbox: one file, or stdout for --out -. Before each message stands a line "From
ID@xxx DATE" with the moment at which Gmail received it, in UTC, and the header
X-Gmail-Labels with the ids of its labels. Lines that begin with "From " are quoted
as mboxrd has it. The file has its name only when it is whole.

eml: a folder with one file for each message, ID.eml, byte for byte as Gmail had it.
An export that was interrupted goes on: files that are there in the right size are
left alone.

Messages whose body is not stored, or is damaged on the disk, are left out, and counted.

Exit codes: 0 exported, 1 failed or something is missing or damaged, 2 wrong usage
or settings, 130 interrupted.`,
		Example: `  headroom messages export ann@example.com --out ann.mbox
  headroom messages export ann@example.com --format eml --out ann/ --label INBOX`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.filter()
			if err != nil {
				return err
			}
			if err := to.check(); err != nil {
				return err
			}
			if g.json && to.out == "-" {
				return usagef("the mbox goes to stdout; leave out --json")
			}
			return withAccount(cmd, g, args[0], func(ctx context.Context, s *sqlite.Store, account jobs.Account) error {
				cfg, err := g.load()
				if err != nil {
					return err
				}
				o := export.Options{Source: s, Bodies: app.Blobs(cfg), Account: account.Email, Filter: filter}
				bars := term.NewBars(cmd.ErrOrStderr())
				if bars != nil {
					n, _, err := s.CountFound(ctx, account.Email, filter)
					if err != nil {
						return err
					}
					bar, done := bars.AddTimed(account.Email), int64(0)
					o.DoneFunc = func(int64) { done++; bar.Set(done, n) }
				}
				r, err := to.export(ctx, cmd, o)
				bars.Close()
				if interrupted(ctx, err) {
					return to.stopped()
				}
				if err != nil {
					return err
				}
				return to.report(cmd, g, r)
			})
		},
	}
	f = addMessageFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&to.format, "format", formatMbox, "`FORMAT` mbox or eml")
	flags.StringVar(&to.out, "out", "", "`FILE` for an mbox, or folder for eml files")
	flags.BoolVar(&to.overwrite, "overwrite", false, "replace the mbox, if there is one, when the new one is whole")
	return cmd
}

func (f exportFlags) export(ctx context.Context, cmd *cobra.Command, o export.Options) (export.Result, error) {
	switch {
	case f.format == formatEML:
		return export.EMLFolder(ctx, o, f.out)
	case f.out == "-":
		return export.Mbox(ctx, o, term.Raw(cmd.OutOrStdout()))
	}
	if info, err := os.Stat(f.out); err == nil && info.IsDir() {
		return export.Result{}, usagef("--out %s is a folder; name a file in it, or use --format eml", f.out)
	}
	r, err := export.MboxFile(ctx, o, f.out, f.overwrite)
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%s exists already; name another file, or replace it with --overwrite", f.out)
	}
	return r, err
}

// stopped says what an export that was interrupted left.
func (f exportFlags) stopped() error {
	if f.format == formatEML {
		return fmt.Errorf("interrupted; every file in %s is whole, and the same command goes on from there", f.out)
	}
	return fmt.Errorf("interrupted; %s is as it was before", f.out)
}

// report tells what was exported, and fails if that is not everything.
func (f exportFlags) report(cmd *cobra.Command, g *globals, r export.Result) error {
	switch {
	case g.json:
		if err := term.WriteJSON(cmd.OutOrStdout(), r); err != nil {
			return err
		}
	case f.out != "-":
		cmd.Printf("exported %d messages (%s) to %s\n", r.Messages, humanize.IBytes(uint64(max(0, r.Bytes))), f.out)
		if r.Present > 0 {
			cmd.Printf("%d were there before\n", r.Present)
		}
	}
	var problems []error
	if n := r.Missing.Count; n > 0 {
		problems = append(problems, fmt.Errorf("of %d messages no body is stored, and they were left out: %s; headroom messages get --raw says why of each", n, few(r.Missing.IDs, n)))
	}
	if n := r.Damaged.Count; n > 0 {
		problems = append(problems, fmt.Errorf("%d messages are damaged on the disk, and were left out: %s; run: headroom store check --repair", n, few(r.Damaged.IDs, n)))
	}
	return errors.Join(problems...)
}

// few names the first of n ids.
func few(ids []string, n int64) string {
	const most = 5
	if n <= most {
		return strings.Join(ids, ", ")
	}
	return strings.Join(ids[:most], ", ") + ", ..."
}
