package export

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"headroom/internal/agenda"
)

// ICSFile writes a calendar to a file, as iCalendar, and returns how many events
// there are. The error is [fs.ErrExist] when there is one and overwrite is false.
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

// ICSPath is the file of a calendar in a folder.
func ICSPath(folder, calendar string) string {
	return filepath.Join(folder, url.QueryEscape(calendar)+".ics")
}
