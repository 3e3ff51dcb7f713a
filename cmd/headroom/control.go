package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/agenda"
	control "headroom/internal/app"
	"headroom/internal/export"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

// An operator is what stands for *control.Control until that is there: its methods
// have the names and forms of Control's, over the functions of internal/app. When
// Control lands, this type goes, and operate opens a Control.
type operator struct {
	cfg config.Config
	log *zap.Logger
	db  *sqlite.Store
}

// operate opens what operators work on, with the settings and the logger of cmd.
func (g *globals) operate(cmd *cobra.Command, use func(context.Context, *operator) error) (err error) {
	cfg, log, err := g.setUp(cmd)
	if err != nil {
		return err
	}
	c := newOperator(cfg, log)
	defer func() { err = errors.Join(err, c.Close()) }()
	return use(cmd.Context(), c)
}

func newOperator(cfg config.Config, log *zap.Logger) *operator { return &operator{cfg: cfg, log: log} }

func (c *operator) Close() error {
	if c.db == nil {
		return nil
	}
	return c.db.Close()
}

func (c *operator) store(ctx context.Context) (_ *sqlite.Store, err error) {
	if c.db == nil {
		c.db, err = control.OpenStore(ctx, c.cfg, c.log)
	}
	return c.db, err
}

// reading calls a function with the store.
func reading[T any](ctx context.Context, c *operator, read func(*sqlite.Store) (T, error)) (v T, err error) {
	s, err := c.store(ctx)
	if err != nil {
		return v, err
	}
	return read(s)
}

func (c *operator) Accounts(ctx context.Context) ([]jobs.Account, error) {
	return reading(ctx, c, func(s *sqlite.Store) ([]jobs.Account, error) { return s.Accounts(ctx) })
}

func (c *operator) Account(ctx context.Context, email string) (jobs.Account, error) {
	return reading(ctx, c, func(s *sqlite.Store) (jobs.Account, error) { return control.KnownAccount(ctx, c.cfg, s, email) })
}

func (c *operator) AddAccount(ctx context.Context, email, project string, as control.Assignment) (jobs.Account, error) {
	return control.AddAccountAs(ctx, c.cfg, email, project, as, c.log)
}

func (c *operator) AssignAccount(ctx context.Context, email string, as control.Assignment) (jobs.Account, error) {
	return control.AssignAccount(ctx, c.cfg, email, as, c.log)
}

func (c *operator) Backfills(ctx context.Context, name string) ([]jobs.Job, error) {
	return reading(ctx, c, func(s *sqlite.Store) ([]jobs.Job, error) { return control.Backfills(ctx, s, name) })
}

func (c *operator) AllBackfills(ctx context.Context, live bool) ([]jobs.Job, error) {
	all, err := reading(ctx, c, func(s *sqlite.Store) ([]jobs.Job, error) {
		if live {
			return s.LiveJobs(ctx)
		}
		return s.Jobs(ctx)
	})
	var backfills []jobs.Job
	for _, j := range all {
		if j.Kind == jobs.MailBackfill {
			backfills = append(backfills, j)
		}
	}
	return backfills, err
}

func (c *operator) Job(ctx context.Context, id string) (jobs.Job, error) {
	return reading(ctx, c, func(s *sqlite.Store) (jobs.Job, error) { return s.Job(ctx, id) })
}

func (c *operator) Failures(ctx context.Context, id string, f jobs.FailureFilter, after string, limit int) ([]jobs.Failure, error) {
	return reading(ctx, c, func(s *sqlite.Store) ([]jobs.Failure, error) { return s.Failures(ctx, id, f, after, limit) })
}

func (c *operator) StartBackfill(ctx context.Context, email string, filter jobs.Filter) (control.Started, error) {
	return control.StartBackfill(ctx, c.cfg, email, filter, c.log)
}

func (c *operator) Estimate(ctx context.Context, email string, filter jobs.Filter, o control.EstimateOptions) (control.Estimate, error) {
	return control.EstimateBackfill(ctx, c.cfg, email, filter, o, c.log)
}

func (c *operator) PlanOf(j jobs.Job) (control.Plan, error) { return control.PlanOf(c.cfg, j) }

func (c *operator) Speed(project string) control.Speed { return control.NewSpeed(c.cfg, project) }

// steering calls a function with an operator of internal/app.
func steering[T any](ctx context.Context, c *operator, queue bool, do func(control.Operator) (T, error)) (v T, err error) {
	err = control.WithOperator(ctx, c.cfg, queue, c.log, func(o control.Operator) (err error) { v, err = do(o); return err })
	return v, err
}

func (c *operator) StartAll(ctx context.Context, chosen jobs.Selection, filter jobs.Filter) ([]control.Started, error) {
	return steering(ctx, c, true, func(o control.Operator) ([]control.Started, error) { return o.StartAll(ctx, c.cfg, chosen, filter) })
}

func (c *operator) Pause(ctx context.Context, name string) ([]control.Steered, error) {
	return steering(ctx, c, false, func(o control.Operator) ([]control.Steered, error) { return o.Pause(ctx, name) })
}

func (c *operator) Cancel(ctx context.Context, name string) ([]control.Steered, error) {
	return steering(ctx, c, false, func(o control.Operator) ([]control.Steered, error) { return o.Cancel(ctx, name) })
}

func (c *operator) Resume(ctx context.Context, name string) ([]control.Steered, error) {
	return steering(ctx, c, true, func(o control.Operator) ([]control.Steered, error) { return o.Resume(ctx, name) })
}

func (c *operator) ResumeAll(ctx context.Context, chosen jobs.Selection) ([]control.Steered, error) {
	return steering(ctx, c, true, func(o control.Operator) ([]control.Steered, error) { return o.ResumeAll(ctx, chosen) })
}

func (c *operator) RetryFailed(ctx context.Context, name string, f jobs.FailureFilter) ([]control.Retried, error) {
	return steering(ctx, c, true, func(o control.Operator) ([]control.Retried, error) { return o.RetryFailed(ctx, name, f) })
}

func (c *operator) RetryAll(ctx context.Context, chosen jobs.Selection, f jobs.FailureFilter) ([]control.Retried, error) {
	return steering(ctx, c, true, func(o control.Operator) ([]control.Retried, error) { return o.RetryAll(ctx, chosen, f) })
}

func (c *operator) StartSync(ctx context.Context, email string) (control.SyncAsked, error) {
	return control.StartSync(ctx, c.cfg, email, c.log)
}

func (c *operator) StartCalendarSync(ctx context.Context, email string) (control.SyncAsked, error) {
	return control.StartCalendarSync(ctx, c.cfg, email, c.log)
}

func (c *operator) Cursor(ctx context.Context, email string) (jobs.Cursor, error) {
	return reading(ctx, c, func(s *sqlite.Store) (jobs.Cursor, error) { return s.Cursor(ctx, email) })
}

func (c *operator) CalendarList(ctx context.Context, email string) (jobs.CalendarList, error) {
	return reading(ctx, c, func(s *sqlite.Store) (jobs.CalendarList, error) { return s.CalendarList(ctx, email) })
}

func (c *operator) Calendars(ctx context.Context, email string) ([]jobs.CountedCalendar, error) {
	return reading(ctx, c, func(s *sqlite.Store) ([]jobs.CountedCalendar, error) {
		return control.StoredCalendars(ctx, c.cfg, s, email)
	})
}

func (c *operator) Calendar(ctx context.Context, email, id string) (jobs.Calendar, error) {
	return reading(ctx, c, func(s *sqlite.Store) (jobs.Calendar, error) {
		return control.StoredCalendar(ctx, c.cfg, s, email, id)
	})
}

func (c *operator) Agenda(ctx context.Context, of jobs.Calendar) (*agenda.Agenda, []jobs.Event, error) {
	s, err := c.store(ctx)
	if err != nil {
		return nil, nil, err
	}
	return control.AgendaOf(ctx, s, of)
}

func (c *operator) EachEvent(ctx context.Context, of jobs.Calendar, deleted bool, use func(jobs.Event) error) error {
	s, err := c.store(ctx)
	if err != nil {
		return err
	}
	return control.EachEvent(ctx, s, of, deleted, use)
}

func (c *operator) Watches(ctx context.Context, email string, after jobs.WatchKey, limit int) ([]jobs.Watch, error) {
	return reading(ctx, c, func(s *sqlite.Store) ([]jobs.Watch, error) {
		return control.StoredWatches(ctx, c.cfg, s, email, after, limit)
	})
}

func (c *operator) FindMessages(ctx context.Context, email string, f jobs.MessageFilter, after string, limit int) ([]jobs.Message, error) {
	return reading(ctx, c, func(s *sqlite.Store) ([]jobs.Message, error) { return s.FindMessages(ctx, email, f, after, limit) })
}

func (c *operator) CountMessages(ctx context.Context, email string, f jobs.MessageFilter) (n, bytes int64, err error) {
	s, err := c.store(ctx)
	if err != nil {
		return 0, 0, err
	}
	return s.CountFound(ctx, email, f)
}

func (c *operator) Bodies() export.Bodies { return control.Blobs(c.cfg) }

func (c *operator) Message(ctx context.Context, email, id string) (jobs.Message, error) {
	return reading(ctx, c, func(s *sqlite.Store) (jobs.Message, error) { return control.StoredMessage(ctx, c.cfg, s, email, id) })
}

func (c *operator) OpenMessage(ctx context.Context, email, id string) (m jobs.Message, raw io.ReadCloser, err error) {
	s, err := c.store(ctx)
	if err != nil {
		return m, nil, err
	}
	return control.OpenMessage(ctx, c.cfg, s, email, id)
}

func (c *operator) OpenFull(ctx context.Context, email, id, part string) (io.ReadCloser, error) {
	return reading(ctx, c, func(s *sqlite.Store) (io.ReadCloser, error) {
		return control.OpenFull(ctx, c.cfg, s, email, id, part)
	})
}

func (c *operator) ScheduleLines(ctx context.Context, scope jobs.ScheduleScope, now time.Time) ([]jobs.ScheduleLine, error) {
	return reading(ctx, c, func(s *sqlite.Store) ([]jobs.ScheduleLine, error) {
		return control.ScheduleLines(ctx, c.cfg, s, scope, now)
	})
}

func (c *operator) NextRuns(ctx context.Context, schedule jobs.Schedule, account string, now time.Time, n int) ([]jobs.ScheduledRun, error) {
	return reading(ctx, c, func(s *sqlite.Store) ([]jobs.ScheduledRun, error) {
		return control.NextRuns(ctx, c.cfg, s, schedule, account, now, n)
	})
}

func (c *operator) RunSchedule(ctx context.Context, schedule jobs.Schedule, scope jobs.ScheduleScope, now time.Time) (jobs.ScheduleRun, error) {
	return reading(ctx, c, func(s *sqlite.Store) (jobs.ScheduleRun, error) {
		return control.RunScheduleNow(ctx, c.cfg, s, schedule, scope, now)
	})
}

func (c *operator) PauseSchedule(ctx context.Context, schedule jobs.Schedule, scope jobs.ScheduleScope) (jobs.SchedulePausing, error) {
	return reading(ctx, c, func(s *sqlite.Store) (jobs.SchedulePausing, error) {
		return control.PauseSchedule(ctx, c.cfg, s, schedule, scope)
	})
}

func (c *operator) ResumeSchedule(ctx context.Context, schedule jobs.Schedule, scope jobs.ScheduleScope) (jobs.SchedulePausing, error) {
	return reading(ctx, c, func(s *sqlite.Store) (jobs.SchedulePausing, error) {
		return control.ResumeSchedule(ctx, c.cfg, s, schedule, scope)
	})
}

func (c *operator) SetQuota(ctx context.Context, r control.QuotaRequest) (control.QuotaSet, error) {
	return control.SetQuota(ctx, c.cfg, r, c.log)
}

func (c *operator) QuotaHistory(ctx context.Context, target string) ([]sqlite.Setting, error) {
	return control.QuotaHistory(ctx, c.cfg, target, c.log)
}

func (c *operator) ReadQuota(ctx context.Context, name, project string) (*control.QuotaReader, error) {
	return control.ReadQuota(ctx, c.cfg, name, project, c.log)
}

func (c *operator) CheckStore(ctx context.Context, repair bool, progress func(done, all int64)) (control.StoreCheck, error) {
	return control.CheckStore(ctx, c.cfg, repair, c.log, progress)
}

func (c *operator) TakeQueues(ctx context.Context) error {
	return control.TakeQueues(ctx, c.cfg, c.log)
}
