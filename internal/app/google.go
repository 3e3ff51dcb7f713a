package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"headroom/config"
	"headroom/internal/google"
	"headroom/jobs"
	"headroom/quota"
	"headroom/workers"
)

// newGoogle reads the projects' credentials. What is wrong with them is wrong
// with the settings.
func (a *App) newGoogle() (*google.Google, error) {
	projects := make(map[string]google.Project, len(a.cfg.Google.Projects))
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(a.cfg.Google.Projects)) {
		p := a.cfg.Google.Projects[name]
		if p.Credentials == "" && a.cfg.Google.Endpoint == "" {
			problems = append(problems, fmt.Errorf("google.projects.%s.credentials: "+
				"must name the key file of a service account, unless google.endpoint names a fake Google", name))
		}
		projects[name] = google.Project{Credentials: p.Credentials}
	}
	if len(problems) > 0 {
		return nil, &config.InvalidError{Problems: problems}
	}
	g, err := google.New(google.Options{
		Endpoint: a.cfg.Google.Endpoint, Ledger: a.ledger, Projects: projects,
		Budget: int64(a.cfg.Worker.MessageBytesInFlight),
		Log:    a.opts.Log, Registerer: a.opts.Registry,
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
