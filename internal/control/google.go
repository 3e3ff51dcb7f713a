package control

import (
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/google"
	"headroom/quota"
)

// OpenGoogle reads the projects' credentials. What is wrong with them is wrong with
// the settings.
func OpenGoogle(cfg config.Config, ledger *quota.Ledger, log *zap.Logger, reg prometheus.Registerer) (*google.Google, error) {
	if problems := CredentialProblems(cfg); len(problems) > 0 {
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

// CredentialProblems is what is wrong with the credentials of projects.
func CredentialProblems(cfg config.Config) []error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(cfg.Google.Projects)) {
		key, path := "google.projects."+name+".credentials", cfg.Google.Projects[name].Credentials
		switch {
		case path != "":
			if err := google.CheckKey(path); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", key, err))
			}
		case cfg.Google.Endpoint == "":
			problems = append(problems, fmt.Errorf("%s: must name the key file of a service account, unless google.endpoint names a fake Google", key))
		}
	}
	return problems
}
