package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/control"
	lab "headroom/internal/lab/cli"
)

// globals are the flags that every command has.
type globals struct {
	config string
	set    []string
	json   bool

	cfg  config.Config   // once it is loaded
	from *config.Sources // of the settings, once they are loaded
}

// newRoot returns the command with all of its subcommands, which print on out.
func newRoot(out io.Writer) *cobra.Command {
	g := &globals{}
	var showVersion bool
	root := &cobra.Command{
		Use:   "headroom",
		Short: "Backfill mailboxes from Google without taking the quota people wait on",
		Long: `Headroom backfills mailboxes from Google without ever taking the quota that
people are waiting on.

Settings come from headroom.yaml, from HEADROOM_* in the environment and from
--set, the last one winning; docs/configuration.md lists them all. Results go to
stdout, logs and errors to stderr.

Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 130 interrupted.
They mean the same for every command. What is named and does not exist, such as an
unknown account, backfill or message, is 1; a project, price list, schedule or format
that neither the settings nor Headroom know is 2; output that cannot be written is 1.
Ctrl-C and SIGTERM before the end are 130, but 0 for what runs until it is stopped
(run, fake-google, and quota show and quota explain with --watch).`,
		Example: `  headroom account add ann@example.com --project my-project
  headroom run &
  headroom backfill start ann@example.com
  headroom backfill watch ann@example.com`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          subcommandOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if showVersion {
				return thisBuild().print(cmd.OutOrStdout(), g.json)
			}
			return cmd.Help()
		},
	}
	root.Flags().BoolVarP(&showVersion, "version", "v", false, "version for headroom")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w; see %s --help", err, cmd.CommandPath())
	})
	flags := root.PersistentFlags()
	flags.StringVar(&g.config, "config", "", "read settings from `FILE` (default headroom.yaml, if there is one; or HEADROOM_CONFIG)")
	flags.StringArrayVar(&g.set, "set", nil, "override one setting, as `KEY=VALUE`; may be repeated")
	flags.BoolVar(&g.json, "json", false, "print results as JSON")
	root.AddCommand(
		newRun(g),
		newAccount(g),
		newBackfill(g),
		newSync(g),
		newCalendar(g),
		newPush(g),
		newSchedule(g),
		newMessages(g),
		newQuota(g),
		newStore(g),
		newConfig(g),
		newVersion(g),
	)
	root.AddCommand(lab.Commands(lab.Root{
		JSON:     func() bool { return g.json },
		Log:      func(cmd *cobra.Command) (*zap.Logger, error) { _, log, err := g.setUp(cmd); return log, err },
		Usage:    func(err error) error { return &usageError{err} },
		Args:     arguments,
		Progress: progressText, Doing: doing,
		UntilStopped: untilStopped,
	})...)
	root.SetHelpCommand(newHelp(root))
	g.locate(root)
	g.complete(root)
	root.SetOut(out) // before completion is made, which keeps it
	explainCompletion(root)
	return root
}

// locate makes commands tell where settings stand that only they find wrong.
func (g *globals) locate(cmd *cobra.Command) {
	if do := cmd.RunE; do != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return g.from.Locate(do(cmd, args)) }
	}
	for _, sub := range cmd.Commands() {
		g.locate(sub)
	}
}

// load reads the settings, where some are wrong as far as they can be read.
func (g *globals) load() (config.Config, error) {
	path := cmp.Or(g.config, os.Getenv("HEADROOM_CONFIG"))
	cfg, from, err := config.Read(config.Options{
		Path: cmp.Or(path, config.DefaultPath), Optional: path == "",
		Environ: os.Environ(), Set: g.set,
	})
	g.cfg, g.from = cfg, from
	if err != nil {
		return cfg, &usageError{err}
	}
	return cfg, nil
}

// setUp reads the settings and makes a logger that writes to cmd's stderr.
func (g *globals) setUp(cmd *cobra.Command) (config.Config, *zap.Logger, error) {
	cfg, err := g.load()
	if err != nil {
		return config.Config{}, nil, err
	}
	log, err := app.NewLog(cfg.Log, cmd.ErrOrStderr())
	if err != nil {
		return config.Config{}, nil, &usageError{err}
	}
	return cfg, log, nil
}

// operate runs a command with what operators can do, by the settings.
func (g *globals) operate(cmd *cobra.Command, use func(context.Context, *control.Control) error) (err error) {
	cfg, log, err := g.setUp(cmd)
	if err != nil {
		return err
	}
	c := control.New(control.Options{Config: cfg, Log: log})
	defer func() { err = errors.Join(err, c.Close()) }()
	return use(cmd.Context(), c)
}
