package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"headroom/internal/app"
	"headroom/internal/store"
	"headroom/jobs"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
)

func newBackfill(g *globals) *cobra.Command {
	return group(&cobra.Command{
		Use:     "backfill",
		Short:   "Start and follow the backfills of mailboxes",
		Example: "  headroom backfill start ann@example.com",
	}, newBackfillStart(g), newBackfillList(g), newBackfillShow(g), newBackfillWatch(g))
}

func newBackfillStart(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "start EMAIL",
		Short: "Start the backfill of an account's mailbox",
		Long: `Start the backfill of an account's mailbox and put it on the queue, where a
worker takes it up (headroom run). A backfill that is under way is left alone;
one that has ended starts over and fetches only what is not stored yet.

Exit codes: 0 started or under way, 1 failed, 2 wrong usage or settings.`,
		Example: "  headroom backfill start ann@example.com",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, log, err := g.setUp(cmd)
			if err != nil {
				return err
			}
			started, err := app.StartBackfill(cmd.Context(), cfg, args[0], jobs.Filter{}, log)
			if err != nil {
				return err
			}
			if g.json {
				return printJSON(cmd, started)
			}
			what := "started"
			if !started.Created {
				what = "under way already:"
			}
			cmd.Printf("%s %s\nfollow it with: headroom backfill watch %s\n", what, started.Job.ID, started.Job.Account)
			return nil
		},
	}
}

func newBackfillList(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List all backfills",
		Long: `List all backfills with their state and progress, the oldest first.

Exit codes: 0 listed, 1 failed, 2 wrong usage or settings.`,
		Example: "  headroom backfill list",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd, g, func(ctx context.Context, s *store.Store) error {
				all, err := s.Jobs(ctx)
				if err != nil {
					return err
				}
				if g.json {
					return printJSON(cmd, append([]jobs.Job{}, all...))
				}
				w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				fmt.Fprintln(w, "ACCOUNT\tSTATE\tDONE\tOF\tFAILED\tUPDATED")
				for _, j := range all {
					fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d\t%s\n", j.Account, j.State, j.Progress.Done(), total(j), j.Progress.Failed, humanize.Time(j.UpdatedAt))
				}
				return w.Flush()
			})
		},
	}
}

// maxShownFailures is how many entries of the failure list are printed.
const maxShownFailures = 1000

// shown is a job with its failure list.
type shown struct {
	jobs.Job
	FailureList []jobs.Failure `json:"failure_list"` // at most the first thousand
}

func newBackfillShow(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "show EMAIL",
		Short: "Show one backfill with its failures",
		Long: `Show the backfill of an account's mailbox: state, progress, what it waits for,
and the messages that could not be fetched (the first thousand of them).

Exit codes: 0 shown, 1 failed, 2 wrong usage or settings.`,
		Example: "  headroom backfill show ann@example.com",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(cmd, g, func(ctx context.Context, s *store.Store) error {
				job, err := backfillOf(ctx, s, args[0])
				if err != nil {
					return err
				}
				failures, err := s.Failures(ctx, job.ID, jobs.FailureFilter{}, "", maxShownFailures)
				if err != nil {
					return err
				}
				if g.json {
					return printJSON(cmd, shown{job, append([]jobs.Failure{}, failures...)})
				}
				printJob(cmd, job, failures)
				return nil
			})
		},
	}
}

func printJob(cmd *cobra.Command, j jobs.Job, failures []jobs.Failure) {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("job", "%s", j.ID)
	row("project", "%s", j.Project)
	row("state", "%s", j.State)
	if why := app.Waiting(j); why != "" {
		row("waits for", "%s", why)
	}
	if j.LastError != "" {
		row("last error", "%s", j.LastError)
	}
	p := j.Progress
	row("done", "%d of %s", p.Done(), total(j))
	if j.Short() {
		row("warning", "%s", shortText(j))
	}
	row("stored by this run", "%d (%s), %d of them unreadable for mail readers", p.Stored, humanize.IBytes(uint64(max(0, p.Bytes))), p.ParseFailed)
	row("stored before it", "%d", p.Known)
	row("gone at Google", "%d", p.Gone)
	row("failed", "%d", p.Failed)
	row("trips back to the queue", "%d, for quota", j.Requeued)
	w.Flush()
	for _, f := range failures {
		cmd.Printf("  %s: given up after %d attempts to %s: %s (%s)\n", f.ID, f.Attempts, f.Phase, f.Reason, f.Class)
	}
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

// backfillOf finds a backfill by the account's address or by its id.
func backfillOf(ctx context.Context, s *store.Store, name string) (jobs.Job, error) {
	id := name
	if !strings.HasPrefix(name, jobs.BackfillID("")) {
		id = jobs.BackfillID(name)
	}
	job, err := s.Job(ctx, id)
	if errors.Is(err, jobs.ErrNotFound) {
		email := strings.TrimPrefix(id, jobs.BackfillID(""))
		return jobs.Job{}, fmt.Errorf("no backfill of %s; start it with: headroom backfill start %s", email, email)
	}
	return job, err
}

// withStore opens the store for a command that reads.
func withStore(cmd *cobra.Command, g *globals, use func(context.Context, *store.Store) error) (err error) {
	cfg, log, err := g.setUp(cmd)
	if err != nil {
		return err
	}
	s, err := app.OpenStore(cmd.Context(), cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return use(cmd.Context(), s)
}
