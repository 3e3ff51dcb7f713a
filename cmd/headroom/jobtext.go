package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	estimates "headroom/internal/control/estimate"
	"headroom/internal/control/progress"
	"headroom/internal/term"
	"headroom/jobs"
)

// nameOf is the short name of a backfill: its account's, if it is of the whole mailbox.
func nameOf(j jobs.Job) string {
	if j.ID == jobs.BackfillID(j.Account) {
		return j.Account
	}
	return j.ID
}

// stateText is a job's state, and the one that was asked for.
func stateText(j jobs.Job) string {
	switch j.Wanted {
	case jobs.Paused:
		return string(j.State) + ", being paused"
	case jobs.Cancelled:
		return string(j.State) + ", being cancelled"
	}
	return string(j.State)
}

// total is the number of messages, or an estimate of it.
func total(j jobs.Job) string {
	n, exact := progress.Total(j)
	switch {
	case exact:
		return fmt.Sprint(n)
	case n > 0:
		return fmt.Sprintf("~%d", n)
	}
	return "?"
}

// shortText warns of a suspiciously short listing.
func shortText(j jobs.Job) string {
	return fmt.Sprintf("Google listed %d messages, its profile promised %d; if the mailbox is not that empty, start the backfill again",
		j.Progress.Listed, j.Progress.Expected)
}

// doing is what a job does now: its state, what it waits for, the time left.
func doing(j jobs.Job, s *progress.Speed) string {
	text := stateText(j)
	if why := waiting(j); why != "" {
		text += " for " + why
	}
	if left, known := s.ETA(j); known && j.State.Live() {
		text += fmt.Sprintf(", %s left at %.1f a second", left.Round(time.Second), s.PerSecond())
	}
	if j.State.Terminal() && j.Short() {
		text += ", but " + shortText(j)
	}
	if j.Progress.Failed > 0 {
		text += fmt.Sprintf(", %d failed", j.Progress.Failed)
	}
	return text
}

// progressText is how much of a job is done, and what it does now.
func progressText(j jobs.Job, s *progress.Speed) string {
	return fmt.Sprintf("%d of %s, %s", j.Progress.Done(), total(j), doing(j, s))
}

// nextStep is the command that continues a job that has stopped.
func nextStep(j jobs.Job) string {
	switch {
	case j.State == jobs.Paused:
		return "resume it with: headroom backfill resume " + nameOf(j)
	case j.State == jobs.Blocked:
		return "when the account has acted, resume it with: headroom backfill resume " + nameOf(j)
	case j.ID == jobs.BackfillID(j.Account):
		return "start it again with: headroom backfill start " + j.Account
	}
	return "start it again, with the same flags as before"
}

// bytesText is a number of bytes.
func bytesText(n int64) string { return humanize.IBytes(uint64(max(0, n))) }

// counted is a number of things: "1 problem", "1,200 problems".
func counted(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return humanize.Comma(n) + " " + noun
}

// writeJob writes all that is known of a job.
func writeJob(out io.Writer, s shown) error {
	w := term.NewGrid(out)
	moment := func(name string, t time.Time) {
		if !t.IsZero() {
			w.Row(name, term.Time(t))
		}
	}
	w.Row("job", s.ID)
	w.Row("project", s.Project)
	if s.Kind == jobs.CalendarSync {
		w.Row("brings", "the calendars and their events; headroom calendar list "+s.Account+" shows them")
	} else {
		w.Row("brings", filterText(s.Filter))
	}
	w.Row("state", stateText(s.Job))
	if s.State == jobs.Waiting {
		w.Row("waits for", s.WaitingFor)
		moment("waits until", s.WaitUntil)
	}
	if s.LastError != "" {
		name := "last error"
		if s.Trouble() == "" {
			name = "error that is over"
		}
		w.Row(name, s.LastError)
	}
	moment("created", s.CreatedAt)
	moment("started", s.StartedAt)
	moment("finished", s.FinishedAt)
	if s.Kind != jobs.CalendarSync {
		writeMailProgress(w, s)
	}
	w.Add("requeued", "%d times, for quota", s.Requeued)
	if err := w.Flush(); err != nil {
		return err
	}
	for _, f := range s.FailureList {
		fmt.Fprintf(out, "  %s: %s after %d attempts to %s: %s (%s)\n", term.Clean(f.ID), fate(f), f.Attempts, f.Phase, term.Clean(f.Reason), f.Class)
	}
	if s.Progress.Failed > 0 {
		fmt.Fprintf(out, "try these again with: headroom backfill retry-failed %s\n", nameOf(s.Job))
	}
	return nil
}

func writeMailProgress(w *term.Grid, s shown) {
	p := s.Progress
	w.Add("done", "%d of %s", p.Done(), total(s.Job))
	if s.Short() {
		w.Row("warning", shortText(s.Job))
	}
	w.Add("stored by this run", "%d (%s), %d of them unreadable for mail readers", p.Stored, bytesText(p.Bytes), p.ParseFailed)
	w.Row("stored before it", p.Known)
	w.Row("gone at Google", p.Gone)
	w.Row("outside the filter", p.Skipped)
	w.Row("too large for a body", p.Oversize)
	w.Row("failed", p.Failed)
	if s.Cursor != nil {
		writeCursor(w, *s.Cursor)
	}
	for i, c := range s.Plan.Calls {
		name := ""
		if i == 0 {
			name = "plan, by " + s.Plan.Prices
		}
		w.Row(name, callText(c))
	}
	if s.Plan.Why != "" {
		w.Row("why", s.Plan.Why)
	}
}

// writeCursor writes how far a live sync has read the history, and why and how far it
// reads the whole mailbox.
func writeCursor(w *term.Grid, c jobs.Cursor) {
	w.Row("history read up to", c.HistoryID)
	if snap := c.Snapshot; snap.Phase != "" {
		text := fmt.Sprintf("at %q, %d messages listed", snap.Phase, snap.Seen)
		if snap.Error != "" {
			text += "; the last try failed: " + snap.Error
		}
		if from := c.ReadingFrom(); !from.IsZero() {
			text += "; goes on at " + term.Time(from)
		}
		w.Row("reads all because", c.ReconcileReason.Text())
		w.Row("reading of all", text)
	} else if !c.ReconciledAt.IsZero() {
		w.Add("all was last read", "%s, because %s", term.Time(c.ReconciledAt), cmp.Or(c.ReconcileReason, jobs.ReconcileAsked).Text())
	}
}

// callText describes a kind of call.
func callText(c estimates.Call) string {
	text := strings.TrimSpace(c.Method+" "+c.Format) + fmt.Sprintf(" for %d units: %s", c.Units, c.For)
	if c.From > 0 {
		text += fmt.Sprintf(", of threads with %d or more to fetch", c.From)
	}
	return text
}

// filterText describes a filter.
func filterText(f jobs.Filter) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if f.First > 0 {
		add("newest %d", f.First)
	}
	if !f.After.IsZero() {
		add("from %s", term.Time(f.After))
	}
	if !f.Before.IsZero() {
		add("before %s", term.Time(f.Before))
	}
	for _, label := range f.Labels {
		add("label %s", label)
	}
	if f.Query != "" {
		add("query %q", f.Query)
	}
	if f.MaxSize > 0 {
		add("at most %s", bytesText(f.MaxSize))
	}
	if len(parts) == 0 {
		add("all mail")
	}
	if f.SpamTrash {
		add("with spam and trash")
	}
	if f.Format != "" {
		add("%s", f.Format)
	}
	return strings.Join(parts, ", ")
}

// waiting is what a job waits for, and until when; "" if it does not wait.
func waiting(j jobs.Job) string {
	if j.State != jobs.Waiting || j.WaitingFor == "" {
		return ""
	}
	if j.WaitUntil.IsZero() {
		return j.WaitingFor
	}
	return fmt.Sprintf("%s until %s", j.WaitingFor, term.Time(j.WaitUntil))
}
