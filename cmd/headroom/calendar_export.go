package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"headroom/config"
	"headroom/internal/agenda"
	"headroom/internal/app"
	"headroom/internal/export"
	"headroom/internal/store/sqlite"
	"headroom/internal/term"
	"headroom/jobs"
)

// formatICS is the one format of an export of calendars.
const formatICS = "ics"

// exportedCalendar is a calendar that was written to a file.
type exportedCalendar struct {
	Calendar string `json:"calendar"`
	Path     string `json:"path"`
	Events   int    `json:"events"`
}

func newCalendarExport(g *globals) *cobra.Command {
	to := exportFlags{}
	cmd := &cobra.Command{
		Use:   "export ACCOUNT [CALENDAR] --out FILE|FOLDER",
		Short: "Write stored calendars to iCalendar files",
		Long: `Write calendars that are stored to iCalendar files for other programs: the one
named by its id or as "primary" to a file, or to stdout for --out -; all of an
account to a folder, each to ID.ics.

A file has its time zones, its events, its series with their rules, and the
occurrences that differ from their series. Cancelled occurrences are dates that
their series leaves out. Of several rules of a series one is written as such, and
the others as dates, since readers know one. Deleted events and series without any
occurrence are not there. A file has its name only when it is whole. A calendar that
cannot be written is named, and the others are exported.

Exit codes: 0 exported, 1 a calendar failed or an event is not understood, which is
left out, 2 wrong usage or settings.`,
		Example: `  headroom calendar export ann@example.com primary --out ann.ics
  headroom calendar export ann@example.com --out calendars/`,
		Args: arguments(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkICS(to, len(args) > 1, g.json); err != nil {
				return err
			}
			return withCalendars(cmd, g, args, func(ctx context.Context, _ config.Config, s *sqlite.Store, all []jobs.Calendar) error {
				return to.exportCalendars(ctx, cmd, g, s, all, len(args) > 1)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&to.format, "format", formatICS, "`FORMAT`: ics is the only one")
	flags.StringVarP(&to.out, "out", "o", "", "`FILE` for one calendar, or folder for all")
	flags.BoolVar(&to.overwrite, "overwrite", false, "replace files that are there, each when the new one is whole")
	return cmd
}

func checkICS(f exportFlags, one, json bool) error {
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

func (f exportFlags) exportCalendars(ctx context.Context, cmd *cobra.Command, g *globals, s *sqlite.Store, all []jobs.Calendar, one bool) error {
	if !one {
		if err := os.MkdirAll(f.out, 0o700); err != nil {
			return fmt.Errorf("make the folder of the export: %w", err)
		}
	}
	done, problems := []exportedCalendar{}, []agenda.Problem{}
	failed := 0
	for _, c := range all {
		e, wrong, err := f.exportCalendar(ctx, cmd, s, c, one)
		problems = append(problems, wrong...)
		switch {
		case err == nil:
			done = append(done, e)
		case one || ctx.Err() != nil:
			return err
		default:
			// The others are not to suffer; that one is missing is said at the end.
			cmd.PrintErrln("headroom:", term.Clean(fmt.Sprintf("calendar %s is not exported: %v", c.ID, err)))
			failed++
		}
	}
	if len(all) == 0 {
		cmd.PrintErrln("headroom: no calendars of the account are stored yet; read them with: headroom calendar sync ACCOUNT")
	}
	var err error
	switch {
	case f.out == "-":
	case g.json:
		err = term.WriteJSON(cmd.OutOrStdout(), done)
	default:
		for _, e := range done {
			cmd.Printf("exported %d events of %s to %s\n", e.Events, e.Calendar, e.Path)
		}
	}
	err = errors.Join(err, notUnderstood(cmd, problems))
	if failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d calendars are not exported; what is above says why", failed, len(all)))
	}
	return err
}

// exportCalendar writes one calendar.
func (f exportFlags) exportCalendar(ctx context.Context, cmd *cobra.Command, s *sqlite.Store, c jobs.Calendar, one bool) (exportedCalendar, []agenda.Problem, error) {
	e := exportedCalendar{Calendar: c.ID, Path: f.out}
	a, _, err := app.AgendaOf(ctx, s, c)
	if err != nil {
		return e, nil, err
	}
	if f.out == "-" {
		e.Events, err = a.WriteICS(term.Raw(cmd.OutOrStdout()))
		return e, a.Problems(), err
	}
	if !one {
		e.Path = export.ICSPath(f.out, c.ID)
	}
	e.Events, err = export.ICSFile(a, e.Path, f.overwrite)
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%s exists already; name another file or folder, or replace it with --overwrite", e.Path)
	}
	return e, a.Problems(), err
}
