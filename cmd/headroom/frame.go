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
func group(cmd *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	cmd.Long = cmd.Short + ".\n\n" + exitCodes
	cmd.Args = subcommandOnly
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return usagef("%s needs a subcommand; see %s --help", cmd.CommandPath(), cmd.CommandPath())
	}
	cmd.AddCommand(subcommands...)
	return cmd
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

// newHelp is "headroom help", which refuses what is no command, as every command does.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Explain a command",
		Long:    "Explain a command, as its --help does.\n\n" + exitCodes,
		Example: "  headroom help backfill start",
		ValidArgsFunction: func(_ *cobra.Command, args []string, prefix string) (names []string, _ cobra.ShellCompDirective) {
			if cmd, rest, err := root.Find(args); err == nil && len(rest) == 0 {
				for _, sub := range cmd.Commands() {
					if sub.IsAvailableCommand() && strings.HasPrefix(sub.Name(), prefix) {
						names = append(names, sub.Name())
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil {
				return &usageError{err}
			}
			if len(rest) > 0 {
				if err := subcommandOnly(cmd, rest); err != nil {
					return err
				}
			}
			return cmd.Help()
		},
	}
}

// explainCompletion gives the commands that cobra makes what ours have.
func explainCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		shells := cmd.Commands()
		group(cmd)
		cmd.Example = "  source <(headroom completion bash)"
		for _, shell := range shells {
			shell.Args = arguments(cobra.NoArgs)
			shell.Long = strings.TrimSpace(shell.Long) + "\n\nExit codes: 0 printed, 1 failed, 2 wrong usage."
			shell.Example = "  headroom completion " + shell.Name()
		}
	}
}
