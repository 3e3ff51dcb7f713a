package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func TestCompletionOffersWhatBelongsThere(t *testing.T) {
	s := newSite(t, realRedis.URL())
	s.headroom("account", "add", "ann@example.com", "--project", "main", "--tenant", "acme")
	s.headroom("backfill", "start", "ann@example.com", "--first", "3")
	for args, want := range map[string]string{
		"backfill start ":           "ann@example.com",
		"backfill pause back":       "backfill:ann@example.com:",
		"calendar list a":           "ann@example.com",
		"sync ":                     "ann@example.com",
		"quota show m":              "main",
		"quota show a":              "ann@example.com",
		"quota set main backfill.c": "backfill.ceiling=",
		"quota prices gmail-l":      "gmail-legacy",
		"schedule next rec":         "reconciliation",
		"schedule list --account ":  "ann@example.com",
		"schedule list --tenant ":   "acme",
		"run --roles sch":           "scheduler",
		"run --roles web,wo":        "web,worker",
		"backfill start ann@example.com --format meta": "metadata-first",
		"messages export ann@example.com --format e":   "eml",
		"calendar export ann@example.com p":            "primary",
		"account add bob@example.com --project o":      "other",
		"backfill failures ann@example.com --class tr": "transient",
		"account list --set worker.con":                "worker.concurrency=",
		"help back":                                    "backfill",
		"help backfill st":                             "start",
		"bench led":                                    "ledger",
		"backfill list ":                               "",
		"messages get ann@example.com ":                "",
		"backfill start ann@example.com ":              "",
		"backfill start ann@example.com --zone ":       "",
		"demo --meter b":                               "bucket",
		"backfill watch ann@example.com back":          "backfill:ann@example.com:",
	} {
		words := append([]string{"__complete", "--config", s.file}, strings.Split(args, " ")...)
		r := headroom(t, words...)
		lines := strings.Split(r.stdout, "\n")
		if r.code != 0 || want != "" && !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, want) }) || want == "" && !strings.HasPrefix(lines[0], ":") {
			t.Errorf("completion of %q = %q, want %q", args, r.stdout, want)
		}
		if directive := lines[len(lines)-2]; directive != ":4" && directive != ":6" { // no files
			t.Errorf("completion of %q ends with %s, and so offers files", args, directive)
		}
	}
	if r := headroom(t, "__complete", "messages", "export", "ann@example.com", "--out", ""); !strings.Contains(r.stdout, "\n:0\n") && !strings.HasPrefix(r.stdout, ":0\n") {
		t.Errorf("completion of --out = %q, want files", r.stdout)
	}
}

func TestEveryArgumentHasAnOffer(t *testing.T) {
	for path, cmd := range leaves(newRoot(io.Discard)) {
		for _, name := range argumentNames(cmd.Use) {
			if path == "headroom bench" || path == "headroom help" {
				continue // they complete by themselves
			}
			if _, known := argumentOffers[strings.TrimSuffix(name, "...")]; !known && name != cmd.Name() {
				t.Errorf("%s: nothing says what %s may be; add it to argumentOffers", path, name)
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if (f.Name == "format" || f.Name == "class" && strings.Contains(f.Usage, "CLASS")) && flagOffer(cmd, f.Name) == nil {
				t.Errorf("%s: nothing says what --%s may be", path, f.Name)
			}
		})
	}
}

func TestMistypedCommandsAreSuggested(t *testing.T) {
	for args, want := range map[string]string{
		"backfill strrt":   "did you mean start?",
		"bakcfill":         "did you mean backfill?",
		"schedule lsit":    "did you mean list?",
		"messages exprot":  "did you mean export?",
		"help bakcfill":    "did you mean backfill?",
		"help quota prces": "did you mean prices?",
		"quota prces":      "did you mean prices?",
		"completion bsah":  "did you mean bash",
	} {
		headroom(t, strings.Fields(args)...).fails(t, exitUsage, want)
	}
	var all []*cobra.Command
	for _, cmd := range leaves(newRoot(io.Discard)) {
		all = append(all, cmd)
	}
	for _, cmd := range all { // two neighbours that changed places
		name := cmd.Name()
		if len(name) < 3 || cmd.Parent() == nil {
			continue
		}
		typo := name[:len(name)-2] + string(name[len(name)-1]) + string(name[len(name)-2])
		if typo == name {
			continue
		}
		parent := strings.Fields(cmd.Parent().CommandPath())[1:]
		headroom(t, append(parent, typo)...).fails(t, exitUsage, name)
	}
}
