package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"headroom/config"
	"headroom/internal/agenda"
	"headroom/internal/app"
	"headroom/internal/lenient"
	"headroom/internal/store/sqlite"
	"headroom/internal/term"
	"headroom/jobs"
)

func newCalendarList(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "list ACCOUNT",
		Short: "List the calendars of an account",
		Long: `List the calendars of an account that are stored: whether each is in step and since
when, when it was last read again as a whole, when one that is left alone is tried
next, and how many events it has. Those that left the account's list are kept.
Moments are in the local time zone, with --json in UTC.

Exit codes: 0 listed, 1 failed, 2 wrong usage or settings.`,
		Example: "  headroom calendar list ann@example.com",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(cmd, g, func(ctx context.Context, s *sqlite.Store) error {
				cfg, err := g.load()
				if err != nil {
					return err
				}
				all, err := app.StoredCalendars(ctx, cfg, s, args[0])
				if err != nil {
					return err
				}
				if g.json {
					return term.WriteJSON(cmd.OutOrStdout(), append([]jobs.CountedCalendar{}, all...))
				}
				return tabulateCalendars(cmd.OutOrStdout(), all)
			})
		},
	}
}

func tabulateCalendars(out io.Writer, all []jobs.CountedCalendar) error {
	w := term.NewTable(out, "ID", "NAME…", "ZONE", "STATE", "EVENTS", "SYNCED", "RESYNCED", "NEXT TRY", "REASON")
	for _, c := range all {
		w.Row(c.ID, c.Summary, c.TimeZone, c.State, c.Events,
			term.Time(c.Stream.SyncedAt), term.Time(c.Stream.ResyncedAt), term.Time(c.Stream.NextTry), c.Reason)
	}
	return w.Flush()
}

// eventFlags choose stored events.
type eventFlags struct {
	from, to, zone  string
	deleted, expand bool
}

// span is what the flags say; a bound that is not given is zero.
func (f eventFlags) span() (span agenda.Span, err error) {
	zone, err := time.LoadLocation(f.zone)
	if err != nil {
		return span, usagef("--zone %s: no such time zone; name one such as Europe/Berlin, UTC or Local", f.zone)
	}
	if span.From, err = moment(f.from, zone); err != nil {
		return span, usagef("--from %w", err)
	}
	if span.To, err = moment(f.to, zone); err != nil {
		return span, usagef("--to %w", err)
	}
	switch {
	case !span.To.IsZero() && !span.From.Before(span.To):
		return span, usagef("--from %s is not before --to %s", f.from, f.to)
	case f.deleted && (f.expand || f.from != "" || f.to != ""):
		return span, usagef("--deleted lists what is stored, wherever it was; leave out --expand, --from and --to")
	}
	return span, nil
}

func newCalendarEvents(g *globals) *cobra.Command {
	var f eventFlags
	cmd := &cobra.Command{
		Use:   "events ACCOUNT [CALENDAR]",
		Short: "List the stored events of an account's calendars",
		Long: `List the events that are stored of an account's calendars, or of the one named by
its id or as "primary": single events, series, and the occurrences that differ from
their series, as Google gave them. --from and --to choose those that take place
between two moments; events of which that is not known are named on stderr.

With --expand every occurrence between them is listed on its own, moved ones where
they are, cancelled ones not at all: from now on for two years where the flags do
not say otherwise. A series without end so comes to one.

Exit codes: 0 listed, 1 failed or an event is not understood, 2 wrong usage or
settings.`,
		Example: `  headroom calendar events ann@example.com primary --from 2026-03-01 --to 2026-04-01
  headroom calendar events ann@example.com --expand --json`,
		Args: arguments(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			span, err := f.span()
			if err != nil {
				return err
			}
			return withCalendars(cmd, g, args, func(ctx context.Context, _ config.Config, s *sqlite.Store, all []jobs.Calendar) error {
				if f.expand {
					return listOccurrences(ctx, cmd, g, s, all, app.AgendaSpan(span.From, span.To, time.Now()))
				}
				return listEvents(ctx, cmd, g, s, all, span, f.deleted)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "only what ends after `TIME`: 2025-01-31 or 2025-01-31T12:00:00+01:00")
	flags.StringVar(&f.to, "to", "", "only what begins before `TIME`")
	flags.StringVar(&f.zone, "zone", "UTC", "the time `ZONE` in which a day begins that is given without a time, such as Europe/Berlin")
	flags.BoolVar(&f.deleted, "deleted", false, "deleted events, too")
	flags.BoolVar(&f.expand, "expand", false, "list every occurrence on its own")
	return cmd
}

// withCalendars opens the store for a command about an account's calendars, or the
// one that is named.
func withCalendars(cmd *cobra.Command, g *globals, args []string, use func(context.Context, config.Config, *sqlite.Store, []jobs.Calendar) error) error {
	return withStore(cmd, g, func(ctx context.Context, s *sqlite.Store) error {
		cfg, err := g.load()
		if err != nil {
			return err
		}
		if len(args) > 1 {
			c, err := app.StoredCalendar(ctx, cfg, s, args[0], args[1])
			if err != nil {
				return err
			}
			return use(ctx, cfg, s, []jobs.Calendar{c})
		}
		account, err := app.KnownAccount(ctx, cfg, s, args[0])
		if err != nil {
			return err
		}
		all, err := s.Calendars(ctx, account.Email)
		if err != nil {
			return err
		}
		return use(ctx, cfg, s, all)
	})
}

func listEvents(ctx context.Context, cmd *cobra.Command, g *globals, s *sqlite.Store, all []jobs.Calendar, span agenda.Span, deleted bool) error {
	var problems []agenda.Problem
	each := func(use func(jobs.Event) error) error {
		for _, c := range all {
			if span.From.IsZero() && span.To.IsZero() {
				if err := app.EachEvent(ctx, s, c, deleted, use); err != nil {
					return err
				}
				continue
			}
			a, events, err := app.AgendaOf(ctx, s, c)
			if err != nil {
				return err
			}
			within, wrong := a.Within(span)
			problems = append(problems, wrong...)
			for _, e := range events {
				if !within[e.ID] {
					continue
				}
				if err := use(e); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if g.json {
		found := []jobs.Event{}
		err := each(func(e jobs.Event) error { found = append(found, e); return nil })
		return cmp.Or(errors.Join(err, term.WriteJSON(cmd.OutOrStdout(), found)), notUnderstood(cmd, problems))
	}
	return cmp.Or(tabulateEvents(cmd.OutOrStdout(), each), notUnderstood(cmd, problems))
}

// shownEvent is what a line says of an event.
type shownEvent struct {
	Summary    string    `json:"summary"`
	Start      shownTime `json:"start"`
	Original   shownTime `json:"originalStartTime"`
	Recurrence []string  `json:"recurrence"`
}

type shownTime struct {
	Date     string `json:"date"`
	DateTime string `json:"dateTime"`
	TimeZone string `json:"timeZone"`
}

func (t shownTime) String() string {
	if t.TimeZone != "" {
		return t.DateTime + " " + t.TimeZone
	}
	return cmp.Or(t.Date, t.DateTime, "-")
}

func tabulateEvents(out io.Writer, each func(func(jobs.Event) error) error) error {
	w := term.NewTable(out, "CALENDAR", "ID", "KIND", "START", "SUMMARY…")
	err := each(func(e jobs.Event) error {
		var shown shownEvent
		_, _ = lenient.Unmarshal(e.JSON, &shown, lenient.Text(func(s string) shownTime { return shownTime{Date: s} })) // what is missing shows as such
		kind, start := "event", shown.Start
		switch {
		case !e.DeletedAt.IsZero():
			kind = "deleted"
		case e.Cancelled():
			kind, start = "cancelled", shown.Original
		case e.Series != "":
			kind = "changed"
		case len(shown.Recurrence) > 0:
			kind = "series"
		}
		w.Row(e.Calendar, e.ID, kind, start, shown.Summary)
		return nil
	})
	return errors.Join(err, w.Flush())
}

func listOccurrences(ctx context.Context, cmd *cobra.Command, g *globals, s *sqlite.Store, all []jobs.Calendar, span agenda.Span) error {
	found, problems := []agenda.Occurrence{}, []agenda.Problem{}
	for _, c := range all {
		a, _, err := app.AgendaOf(ctx, s, c)
		if err != nil {
			return err
		}
		more, wrong, err := a.List(ctx, span)
		if err != nil {
			return err
		}
		found, problems = append(found, more...), append(problems, wrong...)
	}
	if g.json {
		if err := term.WriteJSON(cmd.OutOrStdout(), found); err != nil {
			return err
		}
	} else if err := tabulateOccurrences(cmd.OutOrStdout(), found); err != nil {
		return err
	}
	return notUnderstood(cmd, problems)
}

// notUnderstood names what could not be read, and what was read in an odd way, on
// stderr, and fails if there is something of the first kind.
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

func tabulateOccurrences(out io.Writer, all []agenda.Occurrence) error {
	w := term.NewTable(out, "CALENDAR", "START", "END", "ID", "SUMMARY…")
	for _, o := range all {
		w.Row(o.Calendar, whenCell(o.Start), whenCell(o.End), o.ID, o.Summary)
	}
	return w.Flush()
}

// whenCell is a day, or a moment by the clocks of the zone in which it is kept.
func whenCell(w agenda.When) string {
	if w.Date != "" {
		return w.Date
	}
	return term.TimeIn(w.Time, w.Local().Location())
}
