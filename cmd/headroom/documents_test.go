package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"headroom/config"
)

// commandLine is a command line in a document.
type commandLine struct{ where, text string }

var (
	inlineForm  = regexp.MustCompile("`+([^`\n]+)`+")
	programForm = regexp.MustCompile(`^\s*(?:\$ )?(?:[A-Z_]+=\S+ )*(?:source <\(|docker compose .* headroom )?(?:\./)?(?:bin/)?headroom (.*?)(?:\)|\s{3,}.*)?$`)
	wordForm    = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)
)

// documents are the texts for operators, by their path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, path := range append(paths, "../../README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(text)
	}
	return texts
}

// commandLines finds the command lines of a text: in code spans, and in lines of code.
func commandLines(where, text string) (all []commandLine) {
	fenced := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		var spans []string
		if fenced || strings.HasPrefix(line, "    ") {
			spans = []string{line}
		} else {
			for _, m := range inlineForm.FindAllStringSubmatch(line, -1) {
				spans = append(spans, m[1])
			}
		}
		for _, span := range spans {
			if m := programForm.FindStringSubmatch(span); m != nil {
				all = append(all, commandLine{where, m[1]})
			}
		}
	}
	return all
}

// helpLines are the command lines in the help of all commands.
func helpLines(c *cobra.Command) (all []commandLine) {
	for line := range strings.Lines(c.Example) {
		if m := programForm.FindStringSubmatch(line); m != nil {
			all = append(all, commandLine{c.CommandPath() + " --help", m[1]})
		}
	}
	for _, sub := range c.Commands() {
		all = append(all, helpLines(sub)...)
	}
	return all
}

// words are the arguments of a command line up to where the shell has more to do.
func (l commandLine) words() (args []string) {
	for _, word := range wordForm.FindAllString(l.text, -1) {
		if strings.ContainsAny(word, "|<>;&#") && !strings.ContainsAny(word, `'"=`) && !strings.Contains(word, "|") || slices.Contains([]string{"|", "||", "&&", ">", "&", "#", "\\"}, word) {
			break
		}
		args = append(args, strings.Trim(word, `'"`))
	}
	return args
}

// check tries a command line on the tree of commands, without running it.
func (l commandLine) check() string {
	root := newRoot(io.Discard)
	args := l.words()
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err.Error()
	}
	if cmd == root && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return "there is no command " + rest[0]
	}
	if err := cmd.ParseFlags(rest); errors.Is(err, pflag.ErrHelp) || err != nil && strings.HasPrefix(err.Error(), "flag needs an argument") {
		return "" // a text may name a flag without its value
	} else if err != nil {
		return err.Error()
	}
	if given := cmd.Flags().Args(); cmd.HasSubCommands() && len(given) > 0 {
		return "there is no command " + strings.Join(given, " ") + " of " + cmd.CommandPath()
	} else if len(given) > 0 && cmd.Args != nil { // a text may name a command without its arguments
		if err := cmd.Args(cmd, given); err != nil {
			return err.Error()
		}
	}
	return ""
}

// TestDocumentsNameCommandsAndFlagsThatExist tries every command line of the
// documents and of all help texts on the commands themselves.
func TestDocumentsNameCommandsAndFlagsThatExist(t *testing.T) {
	all := helpLines(newRoot(io.Discard))
	for path, text := range documents(t) {
		all = append(all, commandLines(filepath.Base(path), text)...)
	}
	if len(all) < 100 {
		t.Errorf("only %d command lines were found", len(all))
	}
	for _, line := range all {
		if problem := line.check(); problem != "" {
			t.Errorf("%s: headroom %s: %s", line.where, line.text, problem)
		}
	}
}

func TestACheckOfDocumentsFindsWhatIsWrong(t *testing.T) {
	text := "Run `headroom schedule run watch-renewal --all`.\n\n    headroom backfill starrt ann@example.com\n\n```\n$ headroom sync --wait ann@example.com | jq .\n```\nand `headroom backfill show a b`"
	for i, line := range commandLines("x", text) {
		if line.check() == "" {
			t.Errorf("line %d, %q, counts as right", i, line.text)
		}
	}
	if n := len(commandLines("x", text)); n != 4 {
		t.Errorf("%d command lines, want 4", n)
	}
}

// settingForm is a setting in a code span: its key and, after a colon, its value.
var settingForm = regexp.MustCompile("`([a-z_]+(?:\\.[a-z_]+)+)(?:: ?([^`]+)|=([^`]+))?`")

// TestDocumentsNameSettingsThatExist holds settings in code spans to the keys, and
// values beside them to what the settings take.
func TestDocumentsNameSettingsThatExist(t *testing.T) {
	keys := config.Keys()
	sections := map[string]bool{}
	for _, key := range keys {
		for at := strings.LastIndex(key, "."); at > 0; at = strings.LastIndex(key[:at], ".") {
			sections[key[:at]] = true
		}
	}
	roots := map[string]bool{}
	for _, key := range keys {
		root, _, _ := strings.Cut(key, ".")
		roots[root] = true
	}
	for path, text := range documents(t) {
		for _, m := range settingForm.FindAllStringSubmatch(text, -1) {
			key, value := m[1], m[2]+m[3]
			if root, _, _ := strings.Cut(key, "."); !roots[root] || strings.HasPrefix(key, "backfill.") || strings.HasPrefix(key, "sync.ceiling") || strings.HasPrefix(key, "sync.pace") || strings.HasPrefix(key, "sync.in_flight") {
				continue
			}
			switch {
			case !slices.Contains(keys, key) && !sections[key]:
				t.Errorf("%s: there is no setting %s", filepath.Base(path), key)
			case value != "":
				if _, err := config.Load(config.Options{Set: []string{key + "=" + value}}); err != nil {
					t.Errorf("%s: `%s`: %v", filepath.Base(path), m[0], err)
				}
			}
		}
	}
}
