package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"headroom/internal/term"
)

// What scripts/build.sh and scripts/release.sh stamp into the binary with -ldflags -X;
// empty in one that was built otherwise.
var version, commit, date string

// build is what a binary knows of where it comes from.
type build struct {
	Version string `json:"version"` // a tag, and what was added since
	Commit  string `json:"commit"`  // "" if it is not known
	Date    string `json:"date"`    // of the commit, as in RFC 3339; "" if it is not known
	Go      string `json:"go"`
}

// thisBuild returns what was stamped into this binary or, where nothing was, what Go
// stamps by itself.
func thisBuild() build {
	b := build{version, commit, date, runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if b.Version != "" || !ok {
		b.Version = cmp.Or(b.Version, "unknown")
		return b
	}
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	b.Version = info.Main.Version
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = cmp.Or(b.short(), "(devel)")
		if dirty {
			b.Version += "-dirty"
		}
	}
	return b
}

// short is the commit as people write it.
func (b build) short() string { return b.Commit[:min(12, len(b.Commit))] }

// String is one line: version, commit, date and Go.
func (b build) String() string {
	return fmt.Sprintf("headroom %s (commit %s, %s, %s)", b.Version, cmp.Or(b.short(), "unknown"), cmp.Or(b.Date, "no date"), b.Go)
}

// print prints the line, or the fields as JSON.
func (b build) print(out io.Writer, asJSON bool) error {
	if asJSON {
		return term.WriteJSON(out, b)
	}
	_, err := fmt.Fprintln(out, b)
	return err
}

func newVersion(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:  "version",
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return thisBuild().print(cmd.OutOrStdout(), g.json)
		},
	}
}
