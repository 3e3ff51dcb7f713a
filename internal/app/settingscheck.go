package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"headroom/config"
	"headroom/internal/control"
	"headroom/quota"
)

// CheckSettings finds what a process with these roles refuses of settings, without
// contacting anything: unknown price lists, no project, credentials that are missing
// or no key. The error is a *[config.InvalidError] with every problem.
func CheckSettings(cfg config.Config, roles []Role) error {
	_, err := checkSettings(cfg, roles)
	return err
}

// checkSettings is [CheckSettings], which returns the projects that it has made of
// the settings.
func checkSettings(cfg config.Config, roles []Role) (map[string]quota.Project, error) {
	var problems []error
	projects, err := control.Projects(cfg)
	if err != nil {
		invalid, ok := errors.AsType[*config.InvalidError](err)
		if !ok {
			return nil, err
		}
		problems = invalid.Problems
	}
	if slices.Contains(roles, RoleWorker) {
		if len(cfg.Google.Projects) == 0 {
			problems = append(problems, errors.New("google.projects: must name at least one Google Cloud project; docs/configuration.md shows how"))
		}
		problems = append(problems, control.CredentialProblems(cfg)...)
	}
	if len(problems) > 0 {
		return nil, &config.InvalidError{Problems: problems}
	}
	return projects, nil
}

// CheckPaths finds what opening the store would fail for, by looking at what is there
// already. The error is a *[config.InvalidError] with every problem.
func CheckPaths(cfg config.Config) error {
	var problems []error
	bad := func(key, path, format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s: %s "+format, append([]any{key, path}, args...)...))
	}
	if info, err := os.Stat(cfg.Store.Path); err == nil && info.IsDir() {
		bad("store.path", cfg.Store.Path, "is a folder; name a file in it")
	}
	if info, err := os.Stat(cfg.Store.Blobs); err == nil && !info.IsDir() {
		bad("store.blobs", cfg.Store.Blobs, "is a file; name a folder")
	}
	for _, of := range [][2]string{{"store.path", cfg.Store.Path}, {"store.blobs", cfg.Store.Blobs}} {
		if parent, info := existingParent(of[1]); info != nil && !info.IsDir() {
			bad(of[0], parent, "is a file, and %s would be below it; name another path", of[1])
		}
	}
	if len(problems) > 0 {
		return &config.InvalidError{Problems: problems}
	}
	return nil
}

// existingParent is the nearest thing above path that there is.
func existingParent(path string) (string, fs.FileInfo) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil {
			return dir, info
		}
		if dir == filepath.Dir(dir) {
			return dir, nil
		}
	}
}
