package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/meter"
	"headroom/internal/lab/traffic"
	"headroom/jobs"
)

// What is synced, and for how long.
const (
	calendarAccounts = 100
	calendarsEach    = 5
	calendarEvents   = 40 // of each calendar
	calendarMail     = 20 // messages of each mailbox but the first
	calendarBackfill = 1500
	calendarEvery    = 20 * time.Second
	calendarRounds   = 3
	calendarBound    = 5 * time.Minute
	calendarScale    = 20
	calendarVisited  = 20 // accounts with interactive calls
)

// calendarLoad is the interactive load of each of these accounts, on each API.
var calendarLoad = traffic.Light

// CalendarsFigures are what calendars measured: calendars and mailboxes of many
// accounts that are synced beside a backfill and interactive calls.
type CalendarsFigures struct {
	Bench     string           `json:"bench"`
	Calendars int              `json:"calendars"`
	Synced    int              `json:"synced"`
	Refused   int64            `json:"refused_by_google"`  // on both APIs
	Over      int              `json:"over_limit_windows"` // of both
	Calls     int64            `json:"interactive_calls"`
	Denied    int64            `json:"interactive_denied"`
	DeniedBy  map[string]int64 `json:"denied_by"` // by API, limit and what of it bound
	// Late counts calendars whose sync had not ended when their next was due.
	Late         int     `json:"late_syncs"`
	LongestAge   float64 `json:"longest_age_s"` // since a calendar's last sync
	Interval     float64 `json:"interval_s"`
	ListCalls    int64   `json:"list_calls"` // of events and of lists of calendars
	MailSyncs    int64   `json:"mail_sync_calls"`
	BackfillDone int64   `json:"backfilled"` // messages of the large mailbox
	Seconds      float64 `json:"seconds"`
}

// Broken implements [Figures].
func (f *CalendarsFigures) Broken() string {
	switch {
	case f.Synced != f.Calendars || f.Calendars == 0:
		return fmt.Sprintf("%d of %d calendars are synced", f.Synced, f.Calendars)
	case f.Refused > 0 || f.Over > 0:
		return fmt.Sprintf("Google refused %d calls, %d limits were exceeded", f.Refused, f.Over)
	case f.Denied > 0 || f.Calls == 0:
		return fmt.Sprintf("%d of %d interactive calls were denied", f.Denied, f.Calls)
	case f.Late > 0:
		return fmt.Sprintf("%d calendars were not synced within their interval", f.Late)
	case f.BackfillDone == 0 || f.MailSyncs == 0:
		return fmt.Sprintf("beside them %d messages were backfilled, and %d calls read changes of mail", f.BackfillDone, f.MailSyncs)
	}
	return ""
}

func calendars(ctx context.Context, o Options) (Figures, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, calendarBound)
	defer cancel()
	redisURL, stop, err := redisFor(ctx, o)
	if err != nil {
		return nil, err
	}
	defer stop()
	run := calendarsRun{
		siteSettings: siteSettings{prices: "gmail-2026-05", scale: calendarScale, redisURL: redisURL, every: calendarEvery},
		accounts:     calendarAccounts, calendars: calendarsEach, events: calendarEvents, mail: calendarMail, backfill: calendarBackfill, rounds: calendarRounds,
	}
	f, err := run.measure(ctx, o)
	if err != nil {
		return nil, err
	}
	f.Seconds = round(time.Since(began).Seconds())
	return f, nil
}

// calendarsRun is accounts of which every one has a mailbox and calendars.
type calendarsRun struct {
	siteSettings
	accounts, calendars, events, mail, backfill, rounds int
}

func (c calendarsRun) account(n int) string { return fmt.Sprintf("user-%d@example.com", n) }

func (c calendarsRun) fill(fake *fakegoogle.Server) error {
	for n := range c.accounts {
		messages := c.mail
		if n == 0 {
			messages = c.backfill
		}
		if err := fake.Load(c.account(n), fmt.Sprintf("generate:%d", messages)); err != nil {
			return err
		}
		if _, err := fake.LoadCalendars(c.account(n), fmt.Sprintf("generate:%dx%d", c.calendars, c.events)); err != nil {
			return err
		}
	}
	return nil
}

func (c calendarsRun) measure(ctx context.Context, o Options) (*CalendarsFigures, error) {
	f := &CalendarsFigures{Bench: "calendars", DeniedBy: map[string]int64{}, Calendars: c.accounts * c.calendars, Interval: c.every.Seconds()}
	return f, c.run(ctx, o, c.fill, func(ctx context.Context, s *site) error {
		mail, events, stop := s.traffic(), s.traffic(), make(chan struct{})
		var visited []string
		for n := range min(c.accounts, calendarVisited) {
			visited = append(visited, c.account(n))
		}
		group, together := errgroup.WithContext(ctx)
		group.Go(func() error { return mail.Play(together, stop, calendarLoad, listOfMessages, visited) })
		group.Go(func() error { return events.Play(together, stop, calendarLoad, listOfEvents, visited) })
		group.Go(func() error {
			defer close(stop)
			for n := range c.accounts {
				if _, err := s.start(together, c.account(n), jobs.Filter{}); err != nil {
					return err
				}
				// Schedules sync only calendars that were asked for once.
				if err := s.process.Store().AskCalendarSync(together, c.account(n), false); err != nil {
					return err
				}
			}
			return c.watch(together, s, f)
		})
		if err := group.Wait(); err != nil {
			return err
		}
		c.report(ctx, s, f)
		for api, users := range map[string]*traffic.Traffic{"gmail": mail, "calendar": events} {
			for why, n := range users.DeniedBy() {
				f.Denied += n
				f.DeniedBy[api+" "+why] += n
			}
			figures := users.Figures()
			f.Calls += int64(figures.Calls - figures.Denied)
		}
		return nil
	})
}

// watch looks at all calendars every second, from when each account was added,
// for the wanted number of intervals after all have been synced once.
func (c calendarsRun) watch(ctx context.Context, s *site, f *CalendarsFigures) error {
	late := map[string]bool{}
	began, end := time.Now(), time.Time{}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var looks atomic.Int64
	for end.IsZero() || time.Now().Before(end) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d calendars were synced: %w", f.Synced, f.Calendars, context.Cause(ctx))
		}
		looks.Add(1)
		f.Synced = 0
		for n := range c.accounts {
			all, err := s.process.Store().Calendars(ctx, c.account(n))
			if err != nil {
				return err
			}
			for _, one := range all {
				since := one.Stream.SyncedAt
				if since.IsZero() {
					since = began
				} else if one.State == jobs.CalendarSynced {
					f.Synced++
				}
				age := time.Since(since)
				f.LongestAge = max(f.LongestAge, round(age.Seconds()))
				// Its run was due at most one interval after the last one, and may
				// take another.
				if age > 2*c.every {
					late[c.account(n)+" "+one.ID] = true
				}
			}
		}
		if end.IsZero() && f.Synced == f.Calendars {
			end = time.Now().Add(time.Duration(c.rounds) * c.every)
		}
		s.progress(min(1, float64(looks.Load())/(float64(c.rounds+1)*c.every.Seconds())), "%d of %d calendars are synced", f.Synced, f.Calendars)
	}
	f.Late = len(late)
	return nil
}

// report adds what the fake's meters say.
func (c calendarsRun) report(ctx context.Context, s *site, f *CalendarsFigures) {
	mail, events := s.Fake.Meter(), s.Fake.CalendarMeter()
	f.Refused = mail.Refused() + events.Refused()
	f.Over = mail.OverLimit() + events.OverLimit()
	for _, one := range events.Calendars {
		f.ListCalls += one.CallsByMethod["calendar.events.list"] + one.CallsByMethod["calendar.calendarList.list"]
	}
	for a := range s.Fake.Select(meter.Filter{}) {
		if a.Method == "gmail.users.history.list" {
			f.MailSyncs++
		}
	}
	if job, err := s.process.Store().Job(ctx, jobs.BackfillID(c.account(0))); err == nil {
		f.BackfillDone = job.Progress.Stored
	}
}
