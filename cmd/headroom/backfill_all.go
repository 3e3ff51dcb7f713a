package main

import (
	"errors"

	"github.com/spf13/cobra"

	"headroom/internal/app"
	"headroom/internal/term"
	"headroom/jobs"
)

// allFlags choose backfills of many accounts in place of one that is named.
type allFlags struct {
	all                    bool
	state, tenant, project string
}

// addAllFlags gives a command that takes one name the flags that choose many.
func addAllFlags(cmd *cobra.Command, verb string) *allFlags {
	f := new(allFlags)
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, verb+" those of all accounts, or of those that --state, --tenant and --project choose")
	flags.StringVar(&f.state, "state", "", "with --all: only those in `STATE`, for instance blocked or failed")
	flags.StringVar(&f.tenant, "tenant", "", "with --all: only those of accounts of `TENANT`")
	flags.StringVar(&f.project, "project", "", "with --all: only those of accounts of the Google Cloud `PROJECT`")
	cmd.Args = arguments(func(cmd *cobra.Command, args []string) error {
		if f.all && len(args) > 0 {
			return errors.New("--all is for those of all accounts: name none with it")
		}
		if f.all {
			return nil
		}
		if f.state != "" || f.tenant != "" || f.project != "" {
			return errors.New("--state, --tenant and --project choose among many: give --all with them")
		}
		return cobra.ExactArgs(1)(cmd, args)
	})
	return f
}

// selection is what the flags choose.
func (f *allFlags) selection() (jobs.Selection, error) {
	s := jobs.Selection{State: jobs.State(f.state), Tenant: f.tenant, Project: f.project}
	if err := s.Validate(); err != nil {
		return s, usagef("--state: %w", err)
	}
	return s, nil
}

// startAll starts the backfills of all chosen accounts.
func startAll(cmd *cobra.Command, g *globals, f *allFlags, filter jobs.Filter) error {
	chosen, err := f.selection()
	if err != nil {
		return err
	}
	cfg, log, err := g.setUp(cmd)
	if err != nil {
		return err
	}
	return app.WithOperator(cmd.Context(), cfg, true, log, func(o app.Operator) error {
		all, err := o.StartAll(cmd.Context(), cfg, chosen, filter)
		if g.json {
			return errors.Join(term.WriteJSON(cmd.OutOrStdout(), append([]app.Started{}, all...)), err)
		}
		for _, one := range all {
			if one.Created {
				cmd.Println("started: " + one.Job.ID)
			} else {
				cmd.Println("under way already: " + one.Job.ID)
			}
		}
		sayHowMany(cmd, len(all), "started")
		return err
	})
}

func sayHowMany(cmd *cobra.Command, n int, what string) {
	switch n {
	case 0:
		cmd.Println("no backfill was to be " + what)
	case 1:
		cmd.Println("1 backfill " + what)
	default:
		cmd.Printf("%d backfills %s\n", n, what)
	}
}
