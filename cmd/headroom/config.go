package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/control"
	"headroom/internal/term"
)

// verdict is the result of config check as JSON.
type verdict struct {
	Valid    bool     `json:"valid"`
	File     string   `json:"file"` // that was read; "": none
	Problems []string `json:"problems"`
}

func newConfigCheck(g *globals) *cobra.Command {
	var names []string
	cmd := &cobra.Command{
		Use:  "check",
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			roles, err := app.ParseRoles(names)
			if err != nil {
				return usagef("--roles: %w", err)
			}
			cfg, err := g.load()
			if len(cfg.Google.Projects) > 0 || err == nil { // otherwise the file could not be read, and every project would be reported as missing
				err = alsoInvalid(err, g.from.Locate(bothInvalid(app.CheckSettings(cfg, roles), app.CheckPaths(cfg))))
			}
			v := verdict{Valid: err == nil, File: g.from.File, Problems: []string{}}
			var invalid *config.InvalidError
			if errors.As(err, &invalid) {
				for _, p := range invalid.Problems {
					v.Problems = append(v.Problems, p.Error())
				}
			} else if err != nil {
				return err
			}
			if g.json {
				if err := term.WriteJSON(cmd.OutOrStdout(), v); err != nil {
					return err
				}
			} else if v.Valid {
				cmd.Printf("the settings %s are valid\n", g.origin())
			}
			if v.Valid {
				return nil
			}
			if !g.json {
				for _, p := range v.Problems {
					cmd.Println(p)
				}
			}
			return usagef("the settings %s have %s; docs/configuration.md lists every key", g.origin(), counted(int64(len(v.Problems)), "problem"))
		},
	}
	cmd.Flags().StringSliceVar(&names, "roles", nil, "check for processes with these `ROLES`: scheduler, worker, web (default all)")
	return cmd
}

// bothInvalid joins two checks.
func bothInvalid(a, b error) error {
	x, _ := errors.AsType[*config.InvalidError](a)
	y, _ := errors.AsType[*config.InvalidError](b)
	if x == nil || y == nil {
		return cmp.Or(a, b)
	}
	return &config.InvalidError{Problems: append(x.Problems, y.Problems...)}
}

// alsoInvalid adds the problems of a second check to those found while reading, except
// for keys that have a problem already, from which the new one may follow.
func alsoInvalid(read, more error) error {
	x, _ := errors.AsType[*config.InvalidError](read)
	y, _ := errors.AsType[*config.InvalidError](more)
	if x == nil || y == nil {
		return cmp.Or(read, more)
	}
	known := map[string]bool{}
	for _, p := range x.Problems {
		known[keyOf(p)] = keyOf(p) != ""
	}
	all := slices.Clone(x.Problems)
	for _, p := range y.Problems {
		if !known[keyOf(p)] {
			all = append(all, p)
		}
	}
	return &config.InvalidError{Problems: all}
}

// keyOf is the key that a problem names after its position; empty if it names none.
func keyOf(problem error) string {
	for _, word := range strings.Fields(problem.Error()) {
		if key, ok := strings.CutSuffix(word, ":"); ok && strings.Contains(key, ".") && !strings.Contains(key, ":") {
			return key
		}
	}
	return ""
}

// origin names the file that was read.
func (g *globals) origin() string {
	if g.from.File == "" {
		return "(of no file: there is no " + config.DefaultPath + " here; name one with --config)"
	}
	return "of " + g.from.File
}

func newConfigShow(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:  "show",
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := g.load()
			if err != nil {
				return err
			}
			text, err := yaml.Marshal(control.WithBudgets(control.WithModes(cfg)))
			if err != nil {
				return fmt.Errorf("print the settings: %w", err)
			}
			var tree map[string]any // keys and values as in the file
			if err := yaml.Unmarshal(text, &tree); err != nil {
				return fmt.Errorf("print the settings: %w", err)
			}
			return printResult(cmd, g, tree, func(out io.Writer, _ map[string]any) error {
				_, err := out.Write(text)
				return err
			})
		},
	}
}
