package main

import (
	_ "embed" // the reference of commands
	"strings"

	"github.com/spf13/cobra"
)

// reference explains the commands: a section for each, of which the first paragraph is
// the line in lists of commands, and the last block the examples.
//
//go:embed commands.md
var reference string

// sections are the sections of the reference, by the path of the command.
func sections() map[string]string {
	all := map[string]string{}
	for _, section := range strings.Split(reference, "\n## ")[1:] {
		path, text, _ := strings.Cut(section, "\n")
		all[path] = strings.TrimSpace(text)
	}
	return all
}

// explain gives a command and those below it their sections of the reference.
func explain(cmd *cobra.Command, sections map[string]string) {
	if text, ok := sections[cmd.CommandPath()]; ok {
		const block = "\n\n    "
		if at := strings.LastIndex(text, block); at >= 0 {
			cmd.Example = "  " + strings.ReplaceAll(text[at+len(block):], "\n    ", "\n  ")
			text = text[:at]
		}
		cmd.Short, cmd.Long, _ = strings.Cut(text, "\n\n")
		if cmd.Long == "" {
			cmd.Long = summary(cmd)
		}
	}
	for _, sub := range cmd.Commands() {
		explain(sub, sections)
	}
}

// summary is the help of a command without an explanation.
func summary(cmd *cobra.Command) string { return cmd.Short + ".\n\n" + exitCodes }

// newHelp makes "headroom help", which refuses unknown commands, as all groups do.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]",
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
				return usage(err)
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

// explainCompletion gives the commands that cobra generates exit codes and examples.
func explainCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		shells := cmd.Commands()
		subcommandsOf(cmd)
		cmd.Long = summary(cmd)
		cmd.Example = "  source <(headroom completion bash)"
		for _, shell := range shells {
			shell.Args = arguments(cobra.NoArgs)
			shell.Long = strings.TrimSpace(shell.Long) + "\n\nExit codes: 0 printed, 1 failed, 2 wrong usage."
			shell.Example = "  headroom completion " + shell.Name()
		}
	}
}
