package calendar

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"headroom/internal/lab/fakegoogle/wire"
)

// groupDomain is where calendars live that are not an account's primary one.
const groupDomain = "@group.calendar.google.com"

// mostEvents bounds what one spec makes up.
const mostEvents = 1_000_000

// Load fills the account's calendars; see [Server.LoadCalendars]. What is made up
// depends on the seed.
func (d *Account) Load(spec string, seed uint64) ([]Problem, error) {
	if count, ok := strings.CutPrefix(spec, "generate:"); ok {
		return nil, d.generate(count, seed)
	}
	files, err := calendarFiles(spec)
	if err != nil {
		return nil, fmt.Errorf("load calendars of %s: %w", d.email, err)
	}
	var problems []Problem
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return problems, fmt.Errorf("load calendars of %s: %w", d.email, err)
		}
		c, err := d.Add(Info{ID: calendarID(d.email, file)})
		if err != nil {
			return problems, err
		}
		for _, cause := range c.importICS(text) {
			problems = append(problems, Problem{File: filepath.Base(file), Cause: cause})
		}
	}
	return problems, nil
}

// calendarID is the id of the calendar that a file fills.
func calendarID(email, file string) string {
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	switch {
	case name == "primary":
		return email
	case strings.Contains(name, "@"):
		return name
	}
	return name + groupDomain
}

// calendarFiles finds the ics files of a folder and its subfolders, in the order
// of their paths.
func calendarFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.EqualFold(filepath.Ext(path), ".ics") && !strings.HasPrefix(entry.Name(), ".") {
			files = append(files, path)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = errors.New(path + " holds no .ics file")
	}
	slices.Sort(files)
	return files, err
}

// generate reads N or CxN and makes that up.
func (d *Account) generate(count string, seed uint64) error {
	calendars, events, several := strings.Cut(count, "x")
	if !several {
		calendars, events = "1", count
	}
	c, err := strconv.Atoi(calendars)
	n, err2 := strconv.Atoi(events)
	if err != nil || err2 != nil || c < 1 || n < 0 || n > mostEvents/c {
		return fmt.Errorf("load calendars of %s: %q is not generate:N or generate:CALENDARSxEVENTS of at most %d in all", d.email, count, mostEvents)
	}
	for i := range c {
		id := d.email
		if i > 0 {
			id = fmt.Sprintf("made-up-%d%s", i, groupDomain)
		}
		calendar, err := d.Add(Info{ID: id})
		if err != nil {
			return err
		}
		if err := calendar.generate(wire.SeedOf(seed, d.email+" "+id), n); err != nil {
			return err
		}
	}
	return nil
}
