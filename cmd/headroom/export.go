package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"headroom/internal/agenda"
	"headroom/internal/control"
	"headroom/internal/export"
	"headroom/internal/term"
	"headroom/jobs"
)

// The formats of an export.
const (
	formatMbox = "mbox"
	formatEML  = "eml"
	formatICS  = "ics" // the one format of calendars
)

// exportFlags say in which format and where an export is written.
type exportFlags struct {
	format, out string
	overwrite   bool
}

func addExportFlags(cmd *cobra.Command, format, formatUsage, outUsage, overwriteUsage string) *exportFlags {
	f := &exportFlags{}
	flags := cmd.Flags()
	flags.StringVar(&f.format, "format", format, formatUsage)
	flags.StringVarP(&f.out, "out", "o", "", outUsage)
	flags.BoolVar(&f.overwrite, "overwrite", false, overwriteUsage)
	return f
}

// exists adds a hint to the error of a file that exists already.
func (f *exportFlags) exists(err error, path, other string) error {
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already; name another %s, or replace it with --overwrite", path, other)
	}
	return err
}

func newMessagesExport(g *globals) *cobra.Command {
	var f *messageFlags
	var to *exportFlags
	cmd := g.command("export ACCOUNT --out FILE|FOLDER", cobra.ExactArgs(1), func(ctx context.Context, cmd *cobra.Command, c *control.Control, args []string) error {
		filter, err := f.filter()
		if err != nil {
			return err
		}
		if err := to.checkMail(g.json); err != nil {
			return err
		}
		account, err := c.Account(ctx, args[0])
		if err != nil {
			return err
		}
		o := export.Options{Source: c, Bodies: c.Bodies(), Account: account.Email, Filter: filter}
		bars := term.NewBars(cmd.ErrOrStderr())
		if bars != nil {
			n, _, err := c.CountMessages(ctx, account.Email, filter)
			if err != nil {
				return err
			}
			bar, done := bars.AddTimed(account.Email), int64(0)
			o.DoneFunc = func(int64) { done++; bar.Set(done, n) }
		}
		r, err := to.exportMail(ctx, cmd, o)
		bars.Close()
		switch {
		case interrupted(ctx, err) && to.format == formatEML:
			return fmt.Errorf("interrupted; every file in %s is whole, and the same command goes on from there", to.out)
		case interrupted(ctx, err):
			return fmt.Errorf("interrupted; %s is as it was before", to.out)
		case err != nil:
			return err
		}
		return to.reportMail(cmd, g, r)
	})
	f = addMessageFlags(cmd)
	to = addExportFlags(cmd, formatMbox, "`FORMAT` mbox or eml", "`FILE` for an mbox, or folder for eml files", "replace the mbox, if there is one, when the new one is whole")
	return cmd
}

func (f *exportFlags) checkMail(json bool) error {
	switch {
	case f.format != formatMbox && f.format != formatEML:
		return usagef("--format %q is none; there are mbox and eml", f.format)
	case f.out == "":
		return usagef("--out is missing: the file of an mbox, or the folder of eml files")
	case f.format == formatEML && f.out == "-":
		return usagef("eml files need a folder; name it with --out, or use --format mbox")
	case f.format == formatEML && f.overwrite:
		return usagef("--overwrite is for an mbox; eml files that are whole are left alone")
	case f.out == "-" && json:
		return usagef("the mbox goes to stdout; leave out --json")
	}
	return nil
}

func (f *exportFlags) exportMail(ctx context.Context, cmd *cobra.Command, o export.Options) (export.Result, error) {
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
	return r, f.exists(err, f.out, "file")
}

// reportMail prints what was exported, and fails if that is not everything.
func (f *exportFlags) reportMail(cmd *cobra.Command, g *globals, r export.Result) error {
	if g.json || f.out != "-" {
		err := printResult(cmd, g, r, text(func(r export.Result) string {
			text := fmt.Sprintf("exported %d messages (%s) to %s", r.Messages, bytesText(r.Bytes), f.out)
			if r.Present > 0 {
				text += fmt.Sprintf("\n%d were there before", r.Present)
			}
			return text
		}))
		if err != nil {
			return err
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

// exportedCalendar is a calendar that was written to a file.
type exportedCalendar struct {
	Calendar string `json:"calendar"`
	Path     string `json:"path"`
	Events   int    `json:"events"`
}

func newCalendarExport(g *globals) *cobra.Command {
	var to *exportFlags
	cmd := g.command("export ACCOUNT [CALENDAR] --out FILE|FOLDER", cobra.RangeArgs(1, 2), func(ctx context.Context, cmd *cobra.Command, c *control.Control, args []string) error {
		one := len(args) > 1
		if err := to.checkICS(one, g.json); err != nil {
			return err
		}
		all, err := calendarsOf(ctx, c, args)
		if err != nil {
			return err
		}
		return to.exportCalendars(ctx, cmd, g, c, all, one)
	})
	to = addExportFlags(cmd, formatICS, "`FORMAT`: ics is the only one", "`FILE` for one calendar, or folder for all", "replace files that are there, each when the new one is whole")
	return cmd
}

func (f *exportFlags) checkICS(one, json bool) error {
	switch {
	case f.format != formatICS:
		return usagef("--format %q is none; there is ics", f.format)
	case f.out == "":
		return usagef("--out is missing: a file for one calendar, or a folder for all")
	case f.out == "-" && !one:
		return usagef("only one calendar goes to stdout; name it, or a folder with --out")
	case f.out == "-" && json:
		return usagef("the calendar goes to stdout; leave out --json")
	}
	if info, err := os.Stat(f.out); err == nil && info.IsDir() == one {
		if one {
			return usagef("--out %s is a folder; name a file in it, or leave out the calendar", f.out)
		}
		return usagef("--out %s is a file; name a folder for all calendars, or one calendar", f.out)
	}
	return nil
}

func (f *exportFlags) exportCalendars(ctx context.Context, cmd *cobra.Command, g *globals, c *control.Control, all []jobs.Calendar, one bool) error {
	if !one {
		if err := os.MkdirAll(f.out, 0o700); err != nil {
			return fmt.Errorf("make the folder of the export: %w", err)
		}
	}
	done, problems := []exportedCalendar{}, []agenda.Problem{}
	failed := 0
	for _, calendar := range all {
		e, wrong, err := f.exportCalendar(ctx, cmd, c, calendar, one)
		problems = append(problems, wrong...)
		switch {
		case err == nil:
			done = append(done, e)
		case one || ctx.Err() != nil:
			return err
		default:
			// The others are exported; the error at the end counts the missing ones.
			cmd.PrintErrln("headroom:", term.Clean(fmt.Sprintf("calendar %s is not exported: %v", calendar.ID, err)))
			failed++
		}
	}
	if len(all) == 0 {
		cmd.PrintErrln("headroom: no calendars of the account are stored yet; read them with: headroom calendar sync ACCOUNT")
	}
	var err error
	if f.out != "-" {
		err = printResult(cmd, g, done, func(out io.Writer, done []exportedCalendar) error {
			for _, e := range done {
				fmt.Fprintf(out, "exported %d events of %s to %s\n", e.Events, e.Calendar, e.Path)
			}
			return nil
		})
	}
	err = errors.Join(err, notUnderstood(cmd, problems))
	if failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d calendars are not exported; what is above says why", failed, len(all)))
	}
	return err
}

// exportCalendar writes one calendar.
func (f *exportFlags) exportCalendar(ctx context.Context, cmd *cobra.Command, c *control.Control, of jobs.Calendar, one bool) (exportedCalendar, []agenda.Problem, error) {
	e := exportedCalendar{Calendar: of.ID, Path: f.out}
	a, _, err := c.Agenda(ctx, of)
	if err != nil {
		return e, nil, err
	}
	if f.out == "-" {
		e.Events, err = a.WriteICS(term.Raw(cmd.OutOrStdout()))
		return e, a.Problems(), err
	}
	if !one {
		e.Path = export.ICSPath(f.out, of.ID)
	}
	e.Events, err = export.ICSFile(a, e.Path, f.overwrite)
	return e, a.Problems(), f.exists(err, e.Path, "file or folder")
}
