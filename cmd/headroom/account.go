package main

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"headroom/internal/app"
	"headroom/internal/store/sqlite"
	"headroom/internal/term"
	"headroom/jobs"
)

func newAccount(g *globals) *cobra.Command {
	return group(&cobra.Command{
		Use:     "account",
		Short:   "Add, assign, show and list the Google users whose data is fetched",
		Example: "  headroom account list",
	}, newAccountAdd(g), newAccountSet(g), newAccountShow(g), newAccountList(g))
}

// assignment is what the flags say of an account's shares.
func assignment(cmd *cobra.Command) *app.Assignment {
	as := &app.Assignment{}
	text := func(to **string, name, usage string) {
		cmd.Flags().Func(name, usage, func(s string) error { *to = &s; return nil })
	}
	text(&as.Tenant, "tenant", "whose share of the quota the account has, a `NAME` (default the domain of its address)")
	text(&as.Class, "class", "priority class, a `NAME` in fairness.classes of the settings (default the tenant's)")
	return as
}

func newAccountSet(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set EMAIL",
		Short: "Change the tenant or the priority class of an account",
		Long: `Change whose share of the quota an account has, or its priority class. An empty
name goes back to the domain of the address, or to the class of the tenant. It
holds within seconds, for backfills that are under way too.

Exit codes: 0 changed, 1 failed (no such account), 2 wrong usage or settings (no such
class).`,
		Example: "  headroom account set ann@example.com --tenant acme --class urgent",
		Args:    arguments(cobra.ExactArgs(1)),
	}
	as := assignment(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if as.Tenant == nil && as.Class == nil {
			return usagef("nothing to change; name --tenant or --class")
		}
		cfg, log, err := g.setUp(cmd)
		if err != nil {
			return err
		}
		account, err := app.AssignAccount(cmd.Context(), cfg, args[0], *as, log)
		if err != nil {
			return err
		}
		if g.json {
			return term.WriteJSON(cmd.OutOrStdout(), account)
		}
		cmd.Printf("%s is of tenant %s, class %s\n", account.Email, account.Tenant, cmp.Or(account.Class, "of the tenant"))
		return nil
	}
	return cmd
}

func newAccountAdd(g *globals) *cobra.Command {
	var project string
	var as *app.Assignment
	cmd := &cobra.Command{
		Use:   "add EMAIL --project PROJECT",
		Short: "Add an account",
		Long: `Add a Google user to the store. Its quota is counted in the Google Cloud
project PROJECT, which the settings must name. An account may be another name of a
mailbox that is there already: that is told, here where it is known and else in the
log and by account show, after Google's first answer.

Exit codes: 0 added, 1 failed (the account exists), 2 wrong usage or settings (the
project is unknown).`,
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
			account, err := app.AddAccountAs(cmd.Context(), cfg, email, project, *as, log)
			if err != nil {
				return err
			}
			if g.json {
				return term.WriteJSON(cmd.OutOrStdout(), account)
			}
			cmd.Printf("added %s in project %s\nstart its backfill with: headroom backfill start %s\n",
				account.Email, account.Project, account.Email)
			if len(account.SharedWith) > 0 {
				cmd.PrintErrf("headroom: its mailbox is there already, as %s: its messages will be stored for each, and they share one quota\n",
					strings.Join(account.SharedWith, ", "))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&project, "project", "", "Google Cloud project, by its name in the settings")
	as = assignment(cmd)
	return cmd
}

func newAccountShow(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "show EMAIL",
		Short: "Show an account, and the address of its mailbox",
		Long: `Show one account: its Google Cloud project, tenant and priority class, the address
by which Google names its mailbox, and the other accounts of the same mailbox. One
mailbox has one quota, by whatever names it is known.

Exit codes: 0 shown, 1 failed (no such account), 2 wrong usage or settings.`,
		Example: "  headroom account show ann@example.com",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAccount(cmd, g, args[0], func(_ context.Context, _ *sqlite.Store, a jobs.Account) error {
				if g.json {
					return term.WriteJSON(cmd.OutOrStdout(), a)
				}
				w := term.NewGrid(cmd.OutOrStdout(), 2)
				w.Row("account", a.Email)
				w.Row("project", a.Project)
				w.Row("tenant", a.Tenant)
				w.Row("class", cmp.Or(a.Class, term.None))
				w.Row("added", term.Time(a.CreatedAt))
				mailbox := a.Mailbox
				switch {
				case mailbox == "":
					mailbox = "not known before Google's first answer"
				case a.Alias():
					mailbox += "; " + a.Email + " is another name of it, and its quota is counted there"
				}
				w.Row("mailbox", mailbox)
				if len(a.SharedWith) > 0 {
					w.Row("shared with", strings.Join(a.SharedWith, ", "))
				}
				return w.Flush()
			})
		},
	}
}

func newAccountList(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List all accounts",
		Long: `List all accounts with their Google Cloud project, tenant and priority class.

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
				return term.WriteJSON(cmd.OutOrStdout(), append([]jobs.Account{}, accounts...))
			}
			w := term.NewTable(cmd.OutOrStdout(), "ACCOUNT", "PROJECT", "TENANT", "CLASS", "ADDED")
			for _, a := range accounts {
				w.Row(a.Email, a.Project, a.Tenant, cmp.Or(a.Class, term.None), term.Time(a.CreatedAt))
			}
			return w.Flush()
		},
	}
}
