package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"headroom/internal/term"
)

// print prints the result of a command: v as JSON with --json, else what text writes.
func (g *globals) print(cmd *cobra.Command, v any, text func(out io.Writer) error) error {
	if g.json {
		return term.WriteJSON(cmd.OutOrStdout(), v)
	}
	return text(cmd.OutOrStdout())
}

// printf is [globals.print] for a text of one format.
func (g *globals) printf(cmd *cobra.Command, v any, format string, args ...any) error {
	return g.print(cmd, v, func(out io.Writer) error {
		_, err := fmt.Fprintf(out, format, args...)
		return err
	})
}

// group is a command that only holds others.
func group(name string, subcommands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: name}
	subcommandsOf(cmd)
	cmd.AddCommand(subcommands...)
	return cmd
}

func subcommandsOf(cmd *cobra.Command) {
	cmd.Args = subcommandOnly
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return usagef("%s needs a subcommand; see %s --help", cmd.CommandPath(), cmd.CommandPath())
	}
}

// mistypedLetters is how many letters of a command may be wrong for it to be
// suggested.
const mistypedLetters = 2

// subcommandOnly refuses what is no subcommand.
func subcommandOnly(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = mistypedLetters
	hint := ""
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		hint = fmt.Sprintf("did you mean %s? ", strings.Join(similar, " or "))
	}
	return usagef("unknown command %q; %ssee %s --help", args[0], hint, cmd.CommandPath())
}

// arguments checks the number of arguments.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			text := strings.NewReplacer("1 arg(s)", "1 argument", "arg(s)", "arguments").Replace(err.Error())
			return usagef("%s; usage: %s", text, cmd.UseLine())
		}
		return nil
	}
}
