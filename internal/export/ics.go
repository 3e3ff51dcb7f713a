package export

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"headroom/internal/agenda"
)

// ICSFile writes a calendar to a file, as iCalendar, and returns the number of events.
// The error is [fs.ErrExist] if the file exists and overwrite is false.
func ICSFile(a *agenda.Agenda, path string, overwrite bool) (events int, err error) {
	if _, err := os.Lstat(path); err == nil && !overwrite {
		return 0, fmt.Errorf("export to %s: %w", path, fs.ErrExist)
	}
	err = whole(path, true, func(f *os.File) error {
		events, err = a.WriteICS(f)
		return err
	})
	return events, err
}

// ICSPath returns the path of a calendar's file in a folder.
func ICSPath(folder, calendar string) string {
	return filepath.Join(folder, url.QueryEscape(calendar)+".ics")
}
