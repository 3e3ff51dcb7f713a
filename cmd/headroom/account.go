package main

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"headroom/internal/app"
	"headroom/jobs"

	"github.com/spf13/cobra"
)

func newAccount(g *globals) *cobra.Command {
	return group(&cobra.Command{
		Use:     "account",
		Short:   "Add and list the Google users whose data is fetched",
		Example: "  headroom account list",
	}, newAccountAdd(g), newAccountList(g))
}

func newAccountAdd(g *globals) *cobra.Command {
	var project string
	cmd := &cobra.Command{
		Use:   "add EMAIL --project PROJECT",
		Short: "Add an account",
		Long: `Add a Google user to the store. Its quota is counted in the Google Cloud
project PROJECT, which the settings must name.

Exit codes: 0 added, 1 failed (the account exists, the project is unknown),
2 wrong usage or settings.`,
		Example: "  headroom account add ann@example.com --project my-project",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if project == "" {
				return usagef("--project is missing; usage: %s", cmd.UseLine())
			}
			email, err := jobs.ParseAddress(args[0])
			if err != nil {
				return &usageError{err}
			}
			cfg, log, err := g.setUp(cmd)
			if err != nil {
				return err
			}
			account, err := app.AddAccount(cmd.Context(), cfg, email, project, log)
			if err != nil {
				return err
			}
			if g.json {
				return printJSON(cmd, account)
			}
			cmd.Printf("added %s in project %s\nstart its backfill with: headroom backfill start %s\n",
				account.Email, account.Project, account.Email)
			return nil
		},
	}
	cmd.Flags().StringVar(&project, "project", "", "Google Cloud project, by its name in the settings")
	return cmd
}

func newAccountList(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List all accounts",
		Long: `List all accounts with their Google Cloud project.

Exit codes: 0 listed, 1 failed, 2 wrong usage or settings.`,
		Example: "  headroom account list --json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			cfg, log, err := g.setUp(cmd)
			if err != nil {
				return err
			}
			s, err := app.OpenStore(cmd.Context(), cfg, log)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			accounts, err := s.Accounts(cmd.Context())
			if err != nil {
				return err
			}
			if g.json {
				return printJSON(cmd, append([]jobs.Account{}, accounts...))
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ACCOUNT\tPROJECT\tADDED")
			for _, a := range accounts {
				fmt.Fprintf(w, "%s\t%s\t%s\n", a.Email, a.Project, a.CreatedAt.Local().Format(time.DateTime))
			}
			return w.Flush()
		},
	}
}
