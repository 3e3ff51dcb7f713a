package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/google"
	"headroom/jobs"
	"headroom/quota"
	"headroom/workers"
)

// newGoogle is the process' Google.
func (a *App) newGoogle() (*google.Google, error) {
	return openGoogle(a.cfg, a.ledger, a.opts.Log, a.opts.Registry)
}

// openGoogle reads the projects' credentials. What is wrong with them is wrong
// with the settings.
func openGoogle(cfg config.Config, ledger *quota.Ledger, log *zap.Logger, reg prometheus.Registerer) (*google.Google, error) {
	if problems := credentialProblems(cfg); len(problems) > 0 {
		return nil, &config.InvalidError{Problems: problems}
	}
	projects := make(map[string]google.Project, len(cfg.Google.Projects))
	for name, p := range cfg.Google.Projects {
		projects[name] = google.Project{Credentials: p.Credentials}
	}
	g, err := google.New(google.Options{
		Endpoint: cfg.Google.Endpoint.Reveal(), Ledger: ledger, Projects: projects,
		Budget: int64(cfg.Worker.MessageBytesInFlight),
		Log:    log, Registerer: reg,
	})
	if err != nil {
		return nil, &config.InvalidError{Problems: []error{err}}
	}
	return g, nil
}

// mailboxes opens mailboxes for the workers.
type mailboxes struct{ *google.Google }

// Mailbox implements [workers.Google].
func (m mailboxes) Mailbox(ctx context.Context, account jobs.Account, lane quota.Lane, maxWait time.Duration) (workers.Mailbox, error) {
	box, err := m.Google.Mailbox(ctx, account, lane, maxWait)
	if err != nil {
		return nil, err // a nil *google.Mailbox is no nil workers.Mailbox
	}
	return box, nil
}

// calendars opens calendars for the workers.
type calendars struct{ *google.Google }

// Calendar implements [workers.Calendars].
func (c calendars) Calendar(ctx context.Context, account jobs.Account, lane quota.Lane, maxWait time.Duration) (workers.Calendar, error) {
	calendar, err := c.Google.Calendar(ctx, account, lane, maxWait)
	if err != nil {
		return nil, err // a nil *google.Calendar is no nil workers.Calendar
	}
	return calendar, nil
}
