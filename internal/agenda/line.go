package agenda

import (
	"cmp"

	"google.golang.org/api/calendar/v3"

	"headroom/internal/lenient"
	"headroom/jobs"
)

// A Line is what a list of stored events shows of one.
type Line struct {
	Kind    string // event, series, changed (an occurrence of a series), cancelled or deleted
	Start   string // as Google gave it; "" if it did not
	Summary string
}

// LineOf describes a stored event. Fields that cannot be read are empty.
func LineOf(stored jobs.Event) Line {
	var e calendar.Event
	_, _ = lenient.Unmarshal(stored.JSON, &e, lenient.Text(timeOf)) // a list shows the rest
	kind, start := "event", e.Start
	switch {
	case !stored.DeletedAt.IsZero():
		kind = "deleted"
	case stored.Cancelled():
		kind, start = "cancelled", e.OriginalStartTime
	case stored.Series != "":
		kind = "changed"
	case len(e.Recurrence) > 0:
		kind = "series"
	}
	l := Line{Kind: kind, Summary: e.Summary}
	if start != nil {
		l.Start = cmp.Or(start.Date, start.DateTime)
		if start.TimeZone != "" {
			l.Start = start.DateTime + " " + start.TimeZone
		}
	}
	return l
}
