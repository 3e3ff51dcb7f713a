package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"headroom/internal/control"
	"headroom/internal/term"
)

// A useCase is what a command asks of Control. It checks arguments and flags first.
type useCase[T any] func(ctx context.Context, c *control.Control, args []string) (T, error)

// show makes a command that prints a result: as JSON with --json, else as write does.
func show[T any](g *globals, use string, args cobra.PositionalArgs, do useCase[T], write func(io.Writer, T) error) *cobra.Command {
	return g.command(use, args, func(ctx context.Context, cmd *cobra.Command, c *control.Control, args []string) error {
		v, err := do(ctx, c, args)
		if err != nil {
			return err
		}
		return printResult(cmd, g, v, write)
	})
}

// list makes a command that lists rows.
func list[T any](g *globals, use string, args cobra.PositionalArgs, table term.Table[T], do useCase[[]T]) *cobra.Command {
	return g.command(use, args, func(ctx context.Context, cmd *cobra.Command, c *control.Control, args []string) error {
		all, err := do(ctx, c, args)
		if err != nil {
			return err
		}
		return table.Print(cmd.OutOrStdout(), g.json, all)
	})
}

// command makes a command that runs with a Control.
func (g *globals) command(use string, args cobra.PositionalArgs, do func(context.Context, *cobra.Command, *control.Control, []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Args: arguments(args), RunE: func(cmd *cobra.Command, args []string) error {
		return g.operate(cmd, func(ctx context.Context, c *control.Control) error { return do(ctx, cmd, c, args) })
	}}
}

// printResult prints a result of a command.
func printResult[T any](cmd *cobra.Command, g *globals, v T, write func(io.Writer, T) error) error {
	if g.json {
		return term.WriteJSON(cmd.OutOrStdout(), v)
	}
	return write(cmd.OutOrStdout(), v)
}

// text writes a result as one text.
func text[T any](of func(T) string) func(io.Writer, T) error {
	return func(out io.Writer, v T) error {
		_, err := fmt.Fprintln(out, of(v))
		return err
	}
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

// subcommandOnly refuses arguments of a group of commands.
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
