package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"headroom/jobs"
)

// sync is the job of one of an account's syncs, or nil.
func (s *Store) sync(id string) *jobs.Job {
	if j := s.jobs[id]; j != nil {
		return &j.Job
	}
	return nil
}

// mailAsk is what decides about the live sync of a mailbox that has a cursor.
func (s *Store) mailAsk(a *account) jobs.MailAsk {
	ask := jobs.MailAsk{Cursor: *a.cursor, Job: s.sync(jobs.SyncID(a.Email))}
	for _, j := range s.jobs {
		ask.Crawled = ask.Crawled || j.Account == a.Email && j.Kind == jobs.MailBackfill && j.State.Live()
	}
	return ask
}

// calendarAsk is what decides about the sync of an account's calendars.
func (s *Store) calendarAsk(a *account) jobs.CalendarAsk {
	l := jobs.NewCalendarList(a.Email)
	if a.list != nil {
		l = *a.list
	}
	return jobs.CalendarAsk{List: l, Job: s.sync(jobs.CalendarID(a.Email)), ChangesLeft: a.changesLeft(l, func(*calendar) bool { return true })}
}

// askMail asks for a live sync by [jobs.MailAsk.Ask]. It reports false for a mailbox
// without a cursor, too.
func (s *Store) askMail(a *account, now time.Time) bool {
	return s.askMailBy(a, func(ask *jobs.MailAsk) bool { return ask.Ask(now) })
}

func (s *Store) askMailBy(a *account, by func(*jobs.MailAsk) bool) bool {
	if a.cursor == nil {
		return false
	}
	ask := s.mailAsk(a)
	if !by(&ask) {
		return false
	}
	a.cursor = &ask.Cursor
	return true
}

// askCalendars asks for the sync of calendars that were synced before, or are to be.
func (s *Store) askCalendars(a *account, all bool, now time.Time) bool {
	if a.list == nil {
		return false
	}
	ask := s.calendarAsk(a)
	if !ask.Ask(now, all) {
		return false
	}
	a.list = &ask.List
	return true
}

// forgetAsk forgets what was asked of a sync.
func (s *Store) forgetAsk(j *job) {
	a := s.accounts[j.Account]
	switch {
	case j.Kind == jobs.MailSync && a.cursor != nil:
		c := a.cursor.Forget()
		a.cursor = &c
	case j.Kind == jobs.CalendarSync && a.list != nil:
		a.list.Forget()
	}
}

// AskCalendarSync asks for a sync of an account's calendars. All has it read everything.
func (s *Store) AskCalendarSync(ctx context.Context, email string, all bool) error {
	return s.do(ctx, func(now time.Time) error {
		a, err := s.account(email)
		if err != nil {
			return err
		}
		ask := s.calendarAsk(a)
		ask.List.Ask(now, all)
		a.list = &ask.List
		return nil
	})
}

// dueSync is an account whose sync should start.
type dueSync struct {
	account string
	reason  jobs.DueReason
	since   time.Time
}

// due returns the accounts that are due by some rule, in the order in which they start.
func (s *Store) due(ctx context.Context, rule func(a *account, now time.Time) dueSync) (accounts []string, err error) {
	var all []dueSync
	err = s.do(ctx, func(now time.Time) error {
		for _, a := range sorted(s.accounts) {
			if d := rule(a, now); d.reason != jobs.NotDue {
				all = append(all, d)
			}
		}
		return nil
	})
	slices.SortStableFunc(all, func(a, b dueSync) int { return cmp.Or(cmp.Compare(a.reason, b.reason), a.since.Compare(b.since)) })
	for _, d := range all {
		accounts = append(accounts, d.account)
	}
	return accounts, err
}

// DueSyncs returns the accounts whose live sync should start now, by [jobs.MailAsk.Due].
func (s *Store) DueSyncs(ctx context.Context) ([]string, error) {
	return s.due(ctx, func(a *account, now time.Time) (d dueSync) {
		if a.cursor == nil {
			return d
		}
		since := a.cursor.AskedAt
		if since.IsZero() {
			since = a.cursor.BegunAt
		}
		return dueSync{a.Email, s.mailAsk(a).Due(now), since}
	})
}

// DueCalendarSyncs returns the accounts the sync of whose calendars should start now, by
// [jobs.CalendarAsk.Due].
func (s *Store) DueCalendarSyncs(ctx context.Context) ([]string, error) {
	return s.due(ctx, func(a *account, now time.Time) (d dueSync) {
		if a.list == nil {
			return d
		}
		since := a.list.AskedAt
		if since.IsZero() {
			since = a.list.ResumeAt
		}
		return dueSync{a.Email, s.calendarAsk(a).Due(now), since}
	})
}

// StartSync starts the live sync of a mailbox by [jobs.MailAsk.Start]. The error is
// [jobs.ErrNoCursor] if no backfill of the whole mailbox has begun.
func (s *Store) StartSync(ctx context.Context, email string) (jobs.Job, bool, error) {
	return s.startMail(ctx, email, false)
}

// StartDueSync starts one of [Store.DueSyncs].
func (s *Store) StartDueSync(ctx context.Context, email string) (jobs.Job, bool, error) {
	return s.startMail(ctx, email, true)
}

func (s *Store) startMail(ctx context.Context, email string, due bool) (out jobs.Job, started bool, err error) {
	err = s.do(ctx, func(now time.Time) error {
		a, err := s.account(email)
		if err != nil {
			return err
		}
		if a.cursor == nil {
			return fmt.Errorf("start sync of %q: %w", email, jobs.ErrNoCursor)
		}
		ask, j := s.mailAsk(a), s.jobs[jobs.SyncID(a.Email)]
		how := ask.Start(due)
		switch how {
		case jobs.StartNothing:
			out = j.Job
			return nil
		case jobs.StartLater:
			ask.Again(now)
			a.cursor, out = &ask.Cursor, s.save(j, now)
			return nil
		case jobs.StartOver:
			j.clear(func(i *item) bool { return i.state != jobs.ItemPending && i.state != jobs.ItemFailed })
		}
		j = s.start(j, how, jobs.MailSync, jobs.SyncID(a.Email), a, now)
		j.Filter = jobs.Filter{Format: a.cursor.Format}
		c := a.cursor.BeginSync(now)
		a.cursor, out, started = &c, j.Job, true
		return nil
	})
	return out, started, err
}

// start queues a sync's job in one of the ways that begin a run.
func (s *Store) start(j *job, how jobs.SyncStart, kind jobs.Kind, id string, a *account, now time.Time) *job {
	switch how {
	case jobs.StartFirst:
		return s.add(kind, id, a, now)
	case jobs.StartAtOnce:
		j.Wake()
	default:
		j.Restart(a.Project, false)
	}
	s.save(j, now)
	return j
}

// StartCalendarSync asks for a sync of an account's calendars and starts it, by
// [jobs.CalendarAsk.Start]. Calendars that were left alone are tried again.
func (s *Store) StartCalendarSync(ctx context.Context, email string) (jobs.Job, bool, error) {
	return s.startCalendars(ctx, email, false)
}

// StartDueCalendarSync starts one of [Store.DueCalendarSyncs].
func (s *Store) StartDueCalendarSync(ctx context.Context, email string) (jobs.Job, bool, error) {
	return s.startCalendars(ctx, email, true)
}

func (s *Store) startCalendars(ctx context.Context, email string, due bool) (out jobs.Job, started bool, err error) {
	err = s.do(ctx, func(now time.Time) error {
		a, err := s.account(email)
		if err != nil {
			return err
		}
		ask, j := s.calendarAsk(a), s.jobs[jobs.CalendarID(a.Email)]
		switch {
		case !due:
			ask.List.Ask(now, false)
			ask.List.Stream.TryNow()
			for _, c := range a.calendars {
				c.Stream.TryNow()
			}
			a.list = &ask.List
		case a.list == nil:
			return fmt.Errorf("calendars of %s: %w", email, jobs.ErrNotFound)
		}
		how := ask.Start(due)
		if how == jobs.StartNothing || how == jobs.StartLater {
			out = j.Job
			return nil
		}
		out, started = s.start(j, how, jobs.CalendarSync, jobs.CalendarID(a.Email), a, now).Job, true
		a.beginRound(now)
		return nil
	})
	return out, started, err
}
