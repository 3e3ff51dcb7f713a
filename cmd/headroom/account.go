package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"headroom/internal/control"
	"headroom/internal/term"
	"headroom/jobs"
)

// assignment adds the flags that assign an account to a tenant and a class.
func assignment(cmd *cobra.Command) *control.Assignment {
	as := &control.Assignment{}
	text := func(to **string, name, usage string) {
		cmd.Flags().Func(name, usage, func(s string) error { *to = &s; return nil })
	}
	text(&as.Tenant, "tenant", "whose share of the quota the account has, a `NAME` (default the domain of its address)")
	text(&as.Class, "class", "priority class, a `NAME` in fairness.classes of the settings (default the tenant's)")
	return as
}

func newAccountSet(g *globals) *cobra.Command {
	var as *control.Assignment
	cmd := show(g, "set EMAIL", cobra.ExactArgs(1), func(ctx context.Context, c *control.Control, args []string) (jobs.Account, error) {
		if as.Tenant == nil && as.Class == nil {
			return jobs.Account{}, usagef("nothing to change; name --tenant or --class")
		}
		return c.AssignAccount(ctx, args[0], *as)
	}, text(func(a jobs.Account) string {
		return fmt.Sprintf("%s is of tenant %s, class %s", a.Email, a.Tenant, cmp.Or(a.Class, "of the tenant"))
	}))
	as = assignment(cmd)
	return cmd
}

func newAccountAdd(g *globals) *cobra.Command {
	var project string
	var as *control.Assignment
	cmd := g.command("add EMAIL --project PROJECT", cobra.ExactArgs(1), func(ctx context.Context, cmd *cobra.Command, c *control.Control, args []string) error {
		if project == "" {
			return usagef("--project is missing; usage: %s", cmd.UseLine())
		}
		email, err := jobs.ParseAddress(args[0])
		if err != nil {
			return usage(err)
		}
		a, err := c.AddAccount(ctx, email, project, *as)
		if err != nil {
			return err
		}
		if len(a.SharedWith) > 0 && !g.json {
			defer cmd.PrintErrf("headroom: its mailbox is there already, as %s: its messages will be stored for each, and they share one quota\n",
				strings.Join(a.SharedWith, ", "))
		}
		return printResult(cmd, g, a, text(func(a jobs.Account) string {
			return fmt.Sprintf("added %s in project %s\nstart its backfill with: headroom backfill start %s", a.Email, a.Project, a.Email)
		}))
	})
	cmd.Flags().StringVar(&project, "project", "", "Google Cloud project, by its name in the settings")
	as = assignment(cmd)
	return cmd
}

func newAccountShow(g *globals) *cobra.Command {
	return show(g, "show EMAIL", cobra.ExactArgs(1), func(ctx context.Context, c *control.Control, args []string) (jobs.Account, error) {
		return c.Account(ctx, args[0])
	}, writeAccount)
}

func writeAccount(out io.Writer, a jobs.Account) error {
	mailbox := a.Mailbox
	switch {
	case mailbox == "":
		mailbox = "not known before Google's first answer"
	case a.Alias():
		mailbox += "; " + a.Email + " is another name of it, and its quota is counted there"
	}
	w := term.NewGrid(out)
	w.Row("account", a.Email)
	w.Row("project", a.Project)
	w.Row("tenant", a.Tenant)
	w.Row("class", cmp.Or(a.Class, term.None))
	w.Row("added", term.Time(a.CreatedAt))
	w.Row("mailbox", mailbox)
	if len(a.SharedWith) > 0 {
		w.Row("shared with", strings.Join(a.SharedWith, ", "))
	}
	return w.Flush()
}

var accountTable = term.Table[jobs.Account]{
	Columns: []string{"ACCOUNT", "PROJECT", "TENANT", "CLASS", "ADDED"},
	Cells: func(a jobs.Account) []any {
		return []any{a.Email, a.Project, a.Tenant, cmp.Or(a.Class, term.None), term.Time(a.CreatedAt)}
	},
	Empty: "there are no accounts; add one with: headroom account add EMAIL --project PROJECT",
}

func newAccountList(g *globals) *cobra.Command {
	return list(g, "list", cobra.NoArgs, accountTable, func(ctx context.Context, c *control.Control, _ []string) ([]jobs.Account, error) {
		return c.Accounts(ctx)
	})
}
