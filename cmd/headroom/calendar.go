package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"headroom/internal/agenda"
	"headroom/internal/control"
	"headroom/internal/term"
	"headroom/jobs"
)

// calendarsSynced is a sync of calendars that was asked for, and with --watch how
// it ended.
type calendarsSynced struct {
	control.SyncAsked
	Calendars []jobs.Calendar `json:"calendars,omitempty"`
}

func newCalendarSync(g *globals) *cobra.Command {
	var watch bool
	cmd := g.command("sync ACCOUNT", cobra.ExactArgs(1), func(ctx context.Context, cmd *cobra.Command, c *control.Control, args []string) error {
		asked, err := c.StartCalendarSync(ctx, args[0])
		if err != nil {
			return err
		}
		if !watch {
			return printResult(cmd, g, calendarsSynced{SyncAsked: asked}, text(func(s calendarsSynced) string { return askedText(s.SyncAsked) }))
		}
		done, err := followSync(ctx, cmd, c, asked, func() (waiting bool, err error) {
			list, err := c.CalendarList(ctx, asked.Job.Account)
			return !list.AskedAt.IsZero(), err
		})
		if err != nil {
			return err
		}
		all, err := calendarsOf(ctx, c, []string{done.Job.Account})
		if err != nil {
			return err
		}
		return printResult(cmd, g, calendarsSynced{done, all}, writeCalendarsSynced)
	})
	cmd.Flags().BoolVar(&watch, "watch", false, "wait until it is done, and show how it ended")
	return cmd
}

func writeCalendarsSynced(out io.Writer, done calendarsSynced) error {
	synced, rest := 0, ""
	for _, c := range done.Calendars {
		if c.State == jobs.CalendarSynced {
			synced++
		} else {
			rest += fmt.Sprintf("  %s is %s: %s\n", term.Clean(c.ID), c.State, term.Clean(c.Reason))
		}
	}
	_, err := fmt.Fprintf(out, "synced %d of %d calendars of %s\n%s", synced, len(done.Calendars), done.Job.Account, rest)
	return err
}

// calendarsOf are the calendars of an account, or the one that args name after it.
func calendarsOf(ctx context.Context, c *control.Control, args []string) (all []jobs.Calendar, err error) {
	if len(args) > 1 {
		one, err := c.Calendar(ctx, args[0], args[1])
		return []jobs.Calendar{one}, err
	}
	counted, err := c.Calendars(ctx, args[0])
	for _, one := range counted {
		all = append(all, one.Calendar)
	}
	return all, err
}

var calendarTable = term.Table[jobs.CountedCalendar]{
	Columns: []string{"ID", "NAME…", "ZONE", "STATE", "EVENTS", "SYNCED", "RESYNCED", "NEXT TRY", "REASON"},
	Cells: func(c jobs.CountedCalendar) []any {
		return []any{c.ID, c.Summary, c.TimeZone, c.State, c.Events,
			term.Time(c.Stream.SyncedAt), term.Time(c.Stream.ResyncedAt), term.Time(c.Stream.NextTry), c.Reason}
	},
	Empty: "no calendars of the account are stored yet; read them with: headroom calendar sync ACCOUNT",
}

func newCalendarList(g *globals) *cobra.Command {
	return list(g, "list ACCOUNT", cobra.ExactArgs(1), calendarTable, func(ctx context.Context, c *control.Control, args []string) ([]jobs.CountedCalendar, error) {
		return c.Calendars(ctx, args[0])
	})
}

func newCalendarEvents(g *globals) *cobra.Command {
	var times *spanFlags
	var deleted, expand bool
	cmd := g.command("events ACCOUNT [CALENDAR]", cobra.RangeArgs(1, 2), func(ctx context.Context, cmd *cobra.Command, c *control.Control, args []string) error {
		span, err := eventSpan(times, deleted, expand)
		if err != nil {
			return err
		}
		all, err := calendarsOf(ctx, c, args)
		if err != nil {
			return err
		}
		var problems []agenda.Problem
		if expand {
			var found []agenda.Occurrence
			found, problems, err = occurrencesOf(ctx, c, all, control.AgendaSpan(span.From, span.To, time.Now()))
			if err == nil {
				err = occurrenceTable.Print(cmd.OutOrStdout(), g.json, found)
			}
		} else {
			var found []jobs.Event
			found, problems, err = eventsOf(ctx, c, all, span, deleted)
			err = errors.Join(err, eventTable.Print(cmd.OutOrStdout(), g.json, found))
		}
		return cmp.Or(err, notUnderstood(cmd, problems))
	})
	times = addSpanFlags(cmd, "from", "only what ends after `TIME`", "to", "only what begins before `TIME`")
	cmd.Flags().BoolVar(&deleted, "deleted", false, "deleted events, too")
	cmd.Flags().BoolVar(&expand, "expand", false, "list every occurrence on its own")
	return cmd
}

// eventSpan is what the flags name; a bound that is not given is zero.
func eventSpan(f *spanFlags, deleted, expand bool) (span agenda.Span, err error) {
	if span.From, span.To, err = f.moments(); err != nil {
		return span, err
	}
	switch {
	case !span.To.IsZero() && !span.From.Before(span.To):
		return span, usagef("--from %s is not before --to %s", f.after, f.before)
	case deleted && (expand || f.after != "" || f.before != ""):
		return span, usagef("--deleted lists what is stored, wherever it was; leave out --expand, --from and --to")
	}
	return span, nil
}

// eventsOf reads the events of calendars, those in the span if it has a bound.
func eventsOf(ctx context.Context, c *control.Control, all []jobs.Calendar, span agenda.Span, deleted bool) (found []jobs.Event, problems []agenda.Problem, err error) {
	for _, of := range all {
		if span.From.IsZero() && span.To.IsZero() {
			if err := c.EachEvent(ctx, of, deleted, func(e jobs.Event) error { found = append(found, e); return nil }); err != nil {
				return found, problems, err
			}
			continue
		}
		a, events, err := c.Agenda(ctx, of)
		if err != nil {
			return found, problems, err
		}
		within, wrong := a.Within(span)
		problems = append(problems, wrong...)
		for _, e := range events {
			if within[e.ID] {
				found = append(found, e)
			}
		}
	}
	return found, problems, nil
}

func occurrencesOf(ctx context.Context, c *control.Control, all []jobs.Calendar, span agenda.Span) (found []agenda.Occurrence, problems []agenda.Problem, err error) {
	for _, of := range all {
		a, _, err := c.Agenda(ctx, of)
		if err != nil {
			return nil, nil, err
		}
		more, wrong, err := a.List(ctx, span)
		if err != nil {
			return nil, nil, err
		}
		found, problems = append(found, more...), append(problems, wrong...)
	}
	return found, problems, nil
}

// notUnderstood reports on stderr the events that could not be read, and those that were
// read with a notice. It returns an error if there are any of the first kind.
func notUnderstood(cmd *cobra.Command, problems []agenda.Problem) error {
	missing := 0
	for _, p := range problems {
		cmd.PrintErrln("headroom:", term.Clean(p.String()))
		if !p.Notice {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf("%d events are not fully understood; the rest is complete", missing)
	}
	return nil
}

// noEvents is printed instead of a table without rows.
const noEvents = "no stored events match; headroom calendar list ACCOUNT shows what is in step"

var occurrenceTable = term.Table[agenda.Occurrence]{
	Columns: []string{"CALENDAR", "START", "END", "ID", "SUMMARY…"},
	Cells: func(o agenda.Occurrence) []any {
		return []any{o.Calendar, whenCell(o.Start), whenCell(o.End), o.ID, o.Summary}
	},
	Empty: noEvents,
}

// whenCell is a day, or a moment in the time zone of the event.
func whenCell(w agenda.When) string {
	if w.Date != "" {
		return w.Date
	}
	return term.TimeIn(w.Time, w.Local().Location())
}

var eventTable = term.Table[jobs.Event]{
	Columns: []string{"CALENDAR", "ID", "KIND", "START", "SUMMARY…"},
	Cells: func(e jobs.Event) []any {
		l := agenda.LineOf(e)
		return []any{e.Calendar, e.ID, l.Kind, cmp.Or(l.Start, term.None), l.Summary}
	},
	Empty: noEvents,
}
