package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"headroom/internal/app"
	"headroom/internal/store/sqlite"
	"headroom/internal/term"
	"headroom/jobs"
)

// maxShownFailures is how many entries of the failure list are printed.
const maxShownFailures = 1000

// shown is a job with its failure list.
type shown struct {
	jobs.Job
	FailureList []jobs.Failure `json:"failure_list"` // at most the first thousand
	Plan        app.Plan       `json:"plan"`
	Cursor      *jobs.Cursor   `json:"cursor,omitempty"` // of a live sync
}

func newBackfillShow(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "show BACKFILL|ACCOUNT",
		Short: "Show one backfill with its failures",
		Long: `Show a backfill, named by its id or, where it is the account's only one or that
of the whole mailbox, by the account: state, what it brings, progress, what it
waits for, by which calls it gets messages, and those that could not be fetched (the
first thousand of them; headroom backfill failures lists all). Of a live sync
(sync:ACCOUNT), also how far the history was read, and why and how far the mailbox is
read as a whole. Moments are in the local time zone.

Exit codes: 0 shown, 1 failed, 2 wrong usage or settings.`,
		Example: "  headroom backfill show ann@example.com",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(cmd, g, func(ctx context.Context, s *sqlite.Store) error {
				job, err := oneBackfill(ctx, s, args[0])
				if err != nil {
					return err
				}
				failures, err := s.Failures(ctx, job.ID, jobs.FailureFilter{}, "", maxShownFailures)
				if err != nil {
					return err
				}
				cfg, err := g.load()
				if err != nil {
					return err
				}
				plan, err := app.PlanOf(cfg, job)
				if err != nil {
					return err
				}
				cursor, err := cursorOf(ctx, s, job)
				if err != nil {
					return err
				}
				if g.json {
					return term.WriteJSON(cmd.OutOrStdout(), shown{job, append([]jobs.Failure{}, failures...), plan, cursor})
				}
				printJob(cmd, job, plan, cursor, failures)
				return nil
			})
		},
	}
}

// oneBackfill finds the one backfill that a name stands for.
func oneBackfill(ctx context.Context, s *sqlite.Store, name string) (jobs.Job, error) {
	all, err := app.Backfills(ctx, s, name)
	if err != nil {
		return jobs.Job{}, err
	}
	var ids []string
	for _, j := range all {
		if len(all) == 1 || j.ID == jobs.BackfillID(j.Account) {
			return j, nil
		}
		ids = append(ids, j.ID)
	}
	return jobs.Job{}, fmt.Errorf("%s has %d backfills, name one of them: %s", name, len(all), strings.Join(ids, ", "))
}

// cursorOf is the cursor of a live sync; nil for other jobs.
func cursorOf(ctx context.Context, s *sqlite.Store, j jobs.Job) (*jobs.Cursor, error) {
	if j.Kind != jobs.MailSync {
		return nil, nil
	}
	c, err := s.Cursor(ctx, j.Account)
	if errors.Is(err, jobs.ErrNoCursor) {
		return nil, nil
	}
	return &c, err
}

// printCursor tells how far a live sync has read, and why and how far it reads the
// mailbox as a whole.
func printCursor(row func(name, format string, args ...any), c *jobs.Cursor) {
	if c == nil {
		return
	}
	row("history read up to", "%d", c.HistoryID)
	if snap := c.Snapshot; snap.Phase != "" {
		text := fmt.Sprintf("at %q, %d messages listed", snap.Phase, snap.Seen)
		if snap.Error != "" {
			text += "; the last try failed: " + snap.Error
		}
		if from := c.ReadingFrom(); !from.IsZero() {
			text += "; goes on at " + term.Time(from)
		}
		row("reads all because", "%s", c.ReconcileReason.Text())
		row("reading of all", "%s", text)
	} else if !c.ReconciledAt.IsZero() {
		row("all was last read", "%s, because %s", term.Time(c.ReconciledAt), cmp.Or(c.ReconcileReason, jobs.ReconcileAsked).Text())
	}
}

func printJob(cmd *cobra.Command, j jobs.Job, plan app.Plan, cursor *jobs.Cursor, failures []jobs.Failure) {
	w := term.NewFacts(cmd.OutOrStdout())
	row := w.Add
	moment := func(name string, t time.Time) {
		if !t.IsZero() {
			row(name, "%s", term.Time(t))
		}
	}
	row("job", "%s", j.ID)
	row("project", "%s", j.Project)
	row("brings", "%s", filterText(j.Filter))
	row("state", "%s", stateText(j))
	if j.State == jobs.Waiting {
		row("waits for", "%s", j.WaitingFor)
		moment("waits until", j.WaitUntil)
	}
	if j.LastError != "" {
		name := "last error"
		if j.Trouble() == "" {
			name = "error that is over"
		}
		row(name, "%s", j.LastError)
	}
	moment("created", j.CreatedAt)
	moment("started", j.StartedAt)
	moment("finished", j.FinishedAt)
	p := j.Progress
	row("done", "%d of %s", p.Done(), total(j))
	if j.Short() {
		row("warning", "%s", shortText(j))
	}
	row("stored by this run", "%d (%s), %d of them unreadable for mail readers", p.Stored, humanize.IBytes(uint64(max(0, p.Bytes))), p.ParseFailed)
	row("stored before it", "%d", p.Known)
	row("gone at Google", "%d", p.Gone)
	row("outside the filter", "%d", p.Skipped)
	row("too large for a body", "%d", p.Oversize)
	row("failed", "%d", p.Failed)
	printCursor(row, cursor)
	for i, c := range plan.Calls {
		name := ""
		if i == 0 {
			name = "plan, by " + plan.Prices
		}
		row(name, "%s", callText(c))
	}
	if plan.Why != "" {
		row("why", "%s", plan.Why)
	}
	row("trips back to the queue", "%d, for quota", j.Requeued)
	_ = w.Flush() // the output remembers
	for _, f := range failures {
		cmd.Printf("  %s: %s after %d attempts to %s: %s (%s)\n", term.Clean(f.ID), fate(f), f.Attempts, f.Phase, term.Clean(f.Reason), f.Class)
	}
	if p.Failed > 0 {
		cmd.Printf("try these again with: headroom backfill retry-failed %s\n", nameOf(j))
	}
}

// callText is a kind of call for people.
func callText(c app.Call) string {
	text := strings.TrimSpace(c.Method+" "+c.Format) + fmt.Sprintf(" for %d units: %s", c.Units, c.For)
	if c.From > 0 {
		text += fmt.Sprintf(", of threads with %d or more to fetch", c.From)
	}
	return text
}

// fate says what becomes of an item on the failure list.
func fate(f jobs.Failure) string {
	if f.GivenUp {
		return "given up"
	}
	return "to be tried again"
}

// stateText is a job's state, and the one that it is to come to.
func stateText(j jobs.Job) string {
	switch j.Wanted {
	case jobs.Paused:
		return string(j.State) + ", being paused"
	case jobs.Cancelled:
		return string(j.State) + ", being cancelled"
	}
	return string(j.State)
}

// shortText says that a listing was suspiciously short, and what to do.
func shortText(j jobs.Job) string {
	return fmt.Sprintf("Google listed %d messages, its profile promised %d; if the mailbox is not that empty, start the backfill again",
		j.Progress.Listed, j.Progress.Expected)
}

// total is how many messages there are, as well as is known.
func total(j jobs.Job) string {
	n, exact := app.Total(j)
	switch {
	case exact:
		return fmt.Sprint(n)
	case n > 0:
		return fmt.Sprintf("~%d", n)
	}
	return "?"
}
