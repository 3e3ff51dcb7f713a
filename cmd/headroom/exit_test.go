package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"headroom/config"
	"headroom/internal/control"
	"headroom/jobs"
)

// leaves are the commands that do something, by their path.
func leaves(c *cobra.Command) map[string]*cobra.Command {
	all := map[string]*cobra.Command{}
	if !c.HasSubCommands() {
		all[c.CommandPath()] = c
	}
	for _, sub := range c.Commands() {
		for path, leaf := range leaves(sub) {
			all[path] = leaf
		}
	}
	return all
}

func TestOutputThatCannotBeWrittenIsCode1AndOneLine(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	defer full.Close()
	w := newWorked(t)
	if err := w.store.SaveProfile(t.Context(), w.ref, jobs.Profile{HistoryID: 7}); err != nil {
		t.Fatal(err)
	}
	w.finish(jobs.Completed, "")
	w.headroom("account", "add", "cal@example.com", "--project", "other")
	unprinted := func(args ...string) {
		t.Helper()
		var stderr bytes.Buffer
		code := run(t.Context(), args, strings.NewReader(""), full, &stderr)
		want := "headroom: the output could not be written: no space left on device\n"
		if code != exitFailed || stderr.String() != want {
			t.Errorf("%q > /dev/full = %d, %q, want 1 and %q", args, code, stderr.String(), want)
		}
	}
	for _, args := range []string{"--help", "--version", "help", "help backfill"} {
		unprinted(strings.Fields(args)...)
	}
	const ann = "ann@example.com"
	done := map[string]bool{}
	for _, row := range []string{
		"account add bob@example.com --project main", "account set " + ann + " --tenant acme", "account list", "account show " + ann,
		"backfill list", "backfill show " + ann, "backfill failures " + ann, "backfill failures " + ann + " --csv -",
		"backfill retry-failed " + ann, "backfill watch " + ann, "backfill start " + ann,
		"backfill pause " + ann, "backfill resume " + ann, "backfill cancel " + ann,
		"sync " + ann, "calendar list " + ann, "calendar events " + ann, "calendar events " + ann + " --expand", "calendar sync cal@example.com",
		"push list", "schedule list", "schedule next mail-sync", "schedule run calendar-sync --account cal@example.com",
		"schedule pause mail-sync", "schedule resume mail-sync", "messages list " + ann,
		"quota show main", "quota explain " + ann, "quota prices", "quota prices gmail-legacy",
		"quota prices --diff gmail-2026-05 gmail-2026-10", "quota set main sync.ceiling=0.5", "quota history main",
		"store check", "store take-queues", "config check", "config show", "version", "bench --list", "fake-google",
		"completion bash", "completion zsh", "completion fish", "completion powershell",
	} {
		args := append(strings.Fields(row), "--config", w.file)
		unprinted(args...)
		cmd, _, err := newRoot(io.Discard).Find(args)
		if err != nil {
			t.Fatal(err)
		}
		done[cmd.CommandPath()] = true
		if cmd.Flags().Lookup("json") != nil && !strings.Contains(row, "--csv") && !strings.HasPrefix(row, "account add") && !strings.HasPrefix(row, "completion") {
			unprinted(append(args, "--json")...)
		}
	}
	for path, cmd := range leaves(newRoot(io.Discard)) {
		unprinted(append(strings.Fields(path)[1:], "--help")...)
		switch path {
		case "headroom run", "headroom demo", // they print nothing, or only after a long while
			"headroom backfill estimate", "headroom messages get", "headroom messages export", "headroom calendar export": // they need a Google, or mail
			continue
		}
		if !done[path] && !cmd.Hidden && cmd.IsAvailableCommand() {
			t.Errorf("%s is not tried; add it to this test", path)
		}
	}
}

func TestOneExitCodeForEachKindOfMistake(t *testing.T) {
	s := newSite(t, realRedis.URL())
	s.headroom("account", "add", "ann@example.com", "--project", "main")
	const bob = "bob@example.com"
	for _, row := range []string{
		"account set " + bob + " --tenant acme", "account show " + bob, "backfill start " + bob, "backfill show " + bob, "backfill watch " + bob, "backfill failures " + bob,
		"backfill pause " + bob, "backfill resume " + bob, "backfill cancel " + bob, "backfill retry-failed " + bob, "backfill estimate " + bob,
		"sync " + bob, "calendar list " + bob, "calendar events " + bob, "calendar sync " + bob, "calendar export " + bob + " --out " + s.dir + "/x",
		"messages list " + bob, "messages get " + bob + " x", "messages export " + bob + " --out " + s.dir + "/y", "push list " + bob,
		"schedule list --account " + bob, "schedule next --account " + bob, "schedule run mail-sync --account " + bob,
		"schedule pause mail-sync --account " + bob, "quota show " + bob, "quota explain " + bob, "quota history " + bob, "quota set " + bob + " sync.ceiling=0.5",
	} {
		s.headroom(strings.Fields(row)...).fails(t, exitFailed, bob)
	}
	for _, row := range []string{
		"account add " + bob + " --project nowhere", "quota show nowhere", "quota history nowhere", "quota set nowhere sync.ceiling=0.5", "quota prices --project nowhere",
		"schedule next nowhere", "schedule run nowhere", "schedule pause nowhere", "run --roles nowhere", "quota prices nowhere", "bench nowhere",
		"backfill start ann@example.com --format nowhere", "messages export ann@example.com --out x --format nowhere", "messages list ann@example.com --zone nowhere",
		"account set ann@example.com --class nowhere",
	} {
		s.headroom(strings.Fields(row)...).fails(t, exitUsage, "nowhere")
	}
}

func TestEndings(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	failed, full := errors.New("no such thing"), errors.New("disk full")
	serves := &cobra.Command{Annotations: untilStopped}
	for name, row := range map[string]struct {
		ctx          context.Context
		cmd          *cobra.Command
		err, printed error
		code         int
		text         string
	}{
		"done":                     {t.Context(), nil, nil, nil, 0, ""},
		"failed":                   {t.Context(), nil, failed, nil, 1, "no such thing"},
		"usage":                    {t.Context(), nil, usagef("no flag"), nil, 2, "no flag"},
		"settings":                 {t.Context(), nil, &config.InvalidError{Problems: []error{failed}}, nil, 2, "settings: no such thing"},
		"refused":                  {t.Context(), nil, &control.Error{Kind: control.Refused, Err: failed}, nil, 2, "no such thing"},
		"interrupted":              {stopped, nil, context.Canceled, nil, 130, "interrupted before the end"},
		"failed by an interrupt":   {stopped, nil, failed, nil, 130, "no such thing"},
		"done all the same":        {stopped, nil, nil, nil, 0, ""},
		"wrong usage all the same": {stopped, nil, usagef("no flag"), nil, 2, "no flag"},
		"a server that is stopped": {stopped, serves, nil, nil, 0, ""},
		"a server at its start":    {stopped, serves, fmt.Errorf("redis: %w", context.Canceled), nil, 130, "interrupted before the end"},
		"a server that fails":      {stopped, serves, failed, nil, 1, "no such thing"},
		"not printed":              {t.Context(), nil, nil, full, 1, "the output could not be written: disk full"},
		"not printed, as it says":  {t.Context(), nil, full, full, 1, "the output could not be written: disk full"},
		"failed and not printed":   {t.Context(), nil, failed, full, 1, "no such thing; the output could not be written: disk full"},
		"text of a stranger's":     {t.Context(), nil, errors.New("a\x1b[2J\u202eb"), nil, 1, "a [2J b"},
	} {
		if code, text := ending(row.ctx, row.cmd, row.err, row.printed); code != row.code || text != row.text {
			t.Errorf("%s: ending = %d %q, want %d %q", name, code, text, row.code, row.text)
		}
	}
}
