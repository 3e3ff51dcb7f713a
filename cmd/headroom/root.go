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
		Use:           "headroom",
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
		group("account", newAccountAdd(g), newAccountSet(g), newAccountShow(g), newAccountList(g)),
		group("backfill", newBackfillEstimate(g), newBackfillStart(g), newBackfillList(g), newBackfillShow(g), newBackfillWatch(g),
			newBackfillPause(g), newBackfillResume(g), newBackfillCancel(g), newBackfillFailures(g), newBackfillRetryFailed(g)),
		newSync(g),
		group("calendar", newCalendarList(g), newCalendarEvents(g), newCalendarExport(g), newCalendarSync(g)),
		group("push", newPushList(g)),
		group("schedule", newScheduleList(g), newScheduleNext(g), newScheduleRun(g), newSchedulePause(g), newScheduleResume(g)),
		group("messages", newMessagesList(g), newMessagesGet(g), newMessagesExport(g)),
		group("quota", newQuotaShow(g), newQuotaExplain(g), newQuotaPrices(g), newQuotaSet(g), newQuotaHistory(g)),
		group("store", newStoreCheck(g), newStoreTakeQueues(g)),
		group("config", newConfigCheck(g), newConfigShow(g)),
		newVersion(g),
	)
	root.AddCommand(lab.Commands(lab.Root{
		JSON:     func() bool { return g.json },
		Log:      func(cmd *cobra.Command) (*zap.Logger, error) { _, log, err := g.setUp(cmd); return log, err },
		Usage:    usage,
		Args:     arguments,
		Progress: progressText, Doing: doing,
		UntilStopped: untilStopped,
	})...)
	root.SetHelpCommand(newHelp(root))
	root.InitDefaultHelpCmd()
	explain(root, sections())
	g.locate(root)
	g.complete(root)
	root.SetOut(out) // before completion is made, which keeps the output
	explainCompletion(root)
	return root
}

// locate adds the positions of settings to the errors of commands.
func (g *globals) locate(cmd *cobra.Command) {
	if do := cmd.RunE; do != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return g.from.Locate(do(cmd, args)) }
	}
	for _, sub := range cmd.Commands() {
		g.locate(sub)
	}
}

// load reads the settings. With an error it returns those that could be read.
func (g *globals) load() (config.Config, error) {
	path := cmp.Or(g.config, os.Getenv("HEADROOM_CONFIG"))
	cfg, from, err := config.Read(config.Options{
		Path: cmp.Or(path, config.DefaultPath), Optional: path == "",
		Environ: os.Environ(), Set: g.set,
	})
	g.cfg, g.from = cfg, from
	if err != nil {
		return cfg, usage(err)
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
		return config.Config{}, nil, usage(err)
	}
	return cfg, log, nil
}

// operate runs use with a Control of the settings, which it closes.
func (g *globals) operate(cmd *cobra.Command, use func(context.Context, *control.Control) error) (err error) {
	cfg, log, err := g.setUp(cmd)
	if err != nil {
		return err
	}
	c := control.New(control.Options{Config: cfg, Log: log})
	defer func() { err = errors.Join(err, c.Close()) }()
	return use(cmd.Context(), c)
}
