package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"headroom/internal/app"
	"headroom/internal/term"
)

func newQuotaShow(g *globals) *cobra.Command {
	var f quotaFlags
	cmd := &cobra.Command{
		Use:   "show ACCOUNT|PROJECT",
		Short: "Show how full the quota is, by whom, and who waits for what",
		Long: `Show the quota of an account, or of a whole Google Cloud project: how full each
window is and which lane filled it, what is left to each lane up to its ceiling and
who set that, cool-downs, calls in flight, bytes, settings that were changed live,
and who waits for what until when. What has an @ is an account.

It needs no running process: it asks Redis and the store, and charges nothing.
With --watch it looks again every second until it is interrupted.

Exit codes: 0 shown, 1 failed (Redis does not answer, no such account), 2 wrong usage
or settings (no such project). To interrupt --watch is 0.`,
		Example: `  headroom quota show ann@example.com --watch
  headroom quota show my-project --json`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, g, args[0], func(ctx context.Context, r *app.QuotaReader) (any, func(*page), error) {
				s, err := r.State(ctx)
				return s, func(p *page) { writeState(p, s) }, err
			})
		},
	}
	f.add(cmd)
	return cmd
}

// quotaFlags are those of the commands that read the quota.
type quotaFlags struct {
	project string
	watch   bool
	limit   time.Duration // 0: none
}

func (f *quotaFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.project, "project", "", "the account's Google Cloud `PROJECT`, if the store does not know the account")
	cmd.Flags().BoolVar(&f.watch, "watch", false, "look again every second until interrupted")
	cmd.Flags().DurationVar(&f.limit, "for", 0, "stop watching after this `DURATION`")
}

// watchQuotaEvery is the time between looks at the quota.
const watchQuotaEvery = time.Second

// look reads once: what to print as JSON, and how to write it for people.
type look func(context.Context, *app.QuotaReader) (any, func(*page), error)

// run looks once, or again and again.
func (f *quotaFlags) run(cmd *cobra.Command, g *globals, name string, look look) (err error) {
	if f.limit < 0 || f.limit > 0 && !f.watch {
		return usagef("--for %s says how long to --watch", f.limit)
	}
	cfg, log, err := g.setUp(cmd)
	if err != nil {
		return err
	}
	r, err := app.ReadQuota(cmd.Context(), cfg, name, f.project, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	ctx, cancel := cmd.Context(), func() {}
	if f.limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, f.limit)
	}
	defer cancel()
	v := quotaView{cmd: cmd, json: g.json, watch: f.watch, colours: colours(cmd.OutOrStdout())}
	tick := time.NewTicker(watchQuotaEvery)
	defer tick.Stop()
	for {
		value, write, err := look(ctx, r)
		if f.watch && over(ctx) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := v.show(value, write); err != nil || !f.watch {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// over reports whether a context has ended, or has a deadline that is past: sockets keep
// to it by themselves, and may time out a moment before the context knows.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// colours reports whether out shows colours.
func colours(out io.Writer) bool {
	return term.IsTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// quotaView prints look after look.
type quotaView struct {
	cmd     *cobra.Command
	json    bool
	watch   bool
	colours bool
	shown   bool // there was a look before
}

func (v *quotaView) show(value any, write func(*page)) error {
	if v.json {
		return term.WriteJSON(v.cmd.OutOrStdout(), value)
	}
	p := &page{colours: v.colours, zone: time.Local, width: term.Width(v.cmd.OutOrStdout())}
	switch {
	case v.watch && v.colours:
		p.WriteString("\x1b[H\x1b[2J")
	case v.shown:
		p.WriteString("\n")
	}
	v.shown = true
	write(p)
	_, err := term.Raw(v.cmd.OutOrStdout()).Write(p.Bytes())
	return err
}

// page is a text for people.
type page struct {
	bytes.Buffer
	colours bool
	zone    *time.Location
	width   int       // of the terminal; 0: no bound
	now     time.Time // on the clock of Redis
}

// line writes a line. Only what is drawn may hold sequences of a terminal.
func (p *page) line(format string, args ...any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = term.Clean(text)
		}
	}
	fmt.Fprintf(p, format+"\n", args...)
}

// facts are lines of a name and a text, indented.
func (p *page) facts(indent string) *term.Facts {
	f := term.NewFacts(p)
	f.Indent, f.Width = indent, p.width
	return f
}

// grid are rows of cells, indented.
func (p *page) grid(indent string, columns int) *term.Table {
	t := term.NewGrid(p, columns)
	t.Indent, t.Width = indent, p.width
	return t
}

func (p *page) clock(t time.Time) string { return term.TimeIn(t, p.zone) }

// until is a moment, and how far off it is.
func (p *page) until(t time.Time) string {
	left := max(0, t.Sub(p.now))
	round := 100 * time.Millisecond
	if left > 10*time.Second {
		round = time.Second
	}
	return fmt.Sprintf("until %s (in %s)", p.clock(t), left.Round(round))
}
