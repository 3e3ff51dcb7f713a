package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"headroom/internal/app"
	"headroom/quota"
)

func newQuotaExplain(g *globals) *cobra.Command {
	var f quotaFlags
	var last int
	cmd := &cobra.Command{
		Use:   "explain ACCOUNT",
		Short: "Tell the last decisions about an account, and why",
		Long: `Tell the last decisions about an account, each with its reason and the newest
last: what was admitted and refused, what Google refused, what went on while Redis
did not answer. Like decisions that followed each other closely are told as one.
On top stands what holds now and who may go on.

It needs no running process. What processes noted is in Redis: the last 100
refusals of each account for an hour, admissions for some minutes, everything else
for a day.

Exit codes: 0 told, 1 failed (Redis does not answer, no such account), 2 wrong usage
or settings. To interrupt --watch is 0.`,
		Example: "  headroom quota explain ann@example.com --last 50",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !strings.Contains(args[0], "@") {
				return usagef("%q is no account; for a project run: headroom quota show %s", args[0], args[0])
			}
			if last < 1 {
				return usagef("--last %d is not at least 1", last)
			}
			return f.run(cmd, g, args[0], func(ctx context.Context, r *app.QuotaReader) (any, func(*page), error) {
				s, err := r.Story(ctx, last)
				return toldStory(s), func(p *page) { writeStory(p, s) }, err
			})
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&last, "last", 20, "tell the last `N` decisions")
	return cmd
}

func writeStory(p *page, s app.QuotaStory) {
	p.now = s.At
	p.line("%s in project %s, %s", s.Account, s.Project, p.clock(s.At))
	for _, a := range s.APIs {
		for _, line := range holds(p, a) {
			p.line("  %s: %s", a.API, line)
		}
	}
	p.line("")
	if len(s.Notes) == 0 {
		p.line("no decision is known of")
	}
	for _, n := range s.Notes {
		p.line("%s %s %s: %s", p.clock(n.At), n.API, n.Lane, sentence(p, n))
	}
}

// holds says what holds for an account now, and who may go on.
func holds(p *page, a app.APIQuota) []string {
	var lines []string
	if c := closed(p, a); c[0] != "none" {
		lines = c
	}
	for _, s := range []*app.ScopeQuota{a.User, &a.OfAll} {
		if s != nil && s.ClosedUntil.After(p.now) {
			return append(lines, "nobody may go on before that")
		}
	}
	// left is what fits for a lane, and under which limit.
	left := func(lane int) (units int64, limit string) {
		units = -1
		for _, w := range a.Windows {
			if l := w.Lanes[lane]; units < 0 || l.Left < units {
				units, limit = l.Left, w.Limit
			}
		}
		return units, limit
	}
	if a.OfAll.UnknownUntil.After(p.now) {
		units, limit := left(0)
		return append(lines, fmt.Sprintf("Redis is new or lost its data, so sync and backfill hold %s, or as long from their first call if there was none yet; interactive goes on within what their ceilings leave: %s units (%s)",
			p.until(a.OfAll.UnknownUntil), humanize.Comma(units), limit))
	}
	var may []string
	for i, lane := range quota.Lanes {
		units, limit := left(i)
		may = append(may, fmt.Sprintf("%s %s (%s)", lane, humanize.Comma(units), limit))
	}
	return append(lines, "open; units left now: "+strings.Join(may, ", "))
}

// sentence is a decision as a sentence, without its beginning.
func sentence(p *page, n quota.Note) string {
	within := "at once"
	if took := n.Last.Sub(n.At); took > 0 && n.Calls > 1 {
		within = "within " + milliseconds(took)
		if took < 1e9 {
			within = "within a second"
		}
	}
	count := often(n.Calls)
	if n.Calls > 1 {
		count += " " + within
	}
	switch n.Kind {
	case quota.NoteAdmitted:
		return fmt.Sprintf("admitted %s, %s units", count, humanize.Comma(n.Units))
	case quota.NoteRefused:
		return fmt.Sprintf("refused %s by %s, longest wait %s", count, because(n), milliseconds(n.Wait))
	case quota.NoteNever:
		return fmt.Sprintf("refused %s for good: %s units can never fit under the lane's ceiling", count, humanize.Comma(n.Cost))
	case quota.NoteAway:
		return fmt.Sprintf("not let through %s: Redis did not answer", count)
	case quota.NoteLocal:
		return fmt.Sprintf("let through %s, %s units, by the process itself: Redis did not answer", count, humanize.Comma(n.Units))
	case quota.NoteGoogle:
		text := fmt.Sprintf("Google refused %s: %s, %s", count, n.Scope, n.Reason)
		if n.Words != "" {
			text += fmt.Sprintf(": %q", n.Words)
		}
		if n.Until.IsZero() {
			return text + "; nobody was closed out"
		}
		if n.Feature != "" {
			return fmt.Sprintf("%s; %s closed until %s", text, n.Feature, p.clock(n.Until))
		}
		return text + "; closed until " + p.clock(n.Until)
	}
	return fmt.Sprintf("%s %s", n.Kind, count)
}

// because says what refused a call.
func because(n quota.Note) string {
	used := fmt.Sprintf(" (%s of %s used)", humanize.Comma(n.Used), humanize.Comma(n.Ceiling))
	switch n.Bound {
	case quota.BoundHold:
		if n.Scope != quota.ScopeNone {
			return quota.Cooldown{Scope: n.Scope, Feature: n.Feature, Reason: n.Reason, Words: n.Words}.String()
		}
		return "the cool-down of " + n.Limit
	case quota.BoundUnknown:
		return "the hold after Redis lost its data"
	case quota.BoundPace:
		return "the pace of " + n.Limit + used
	}
	return fmt.Sprintf("the %s of %s%s", n.Bound, n.Limit, used)
}

// toldNote is a decision as JSON, with its sentence.
type toldNote struct {
	Text string     `json:"text"`
	Note quota.Note `json:"decision"`
}

// toldStory is the story as JSON.
func toldStory(s app.QuotaStory) any {
	p := &page{zone: time.UTC, now: s.At}
	notes := make([]toldNote, len(s.Notes))
	for i, n := range s.Notes {
		notes[i] = toldNote{fmt.Sprintf("%s %s %s: %s", p.clock(n.At), n.API, n.Lane, sentence(p, n)), n}
	}
	now := []string{}
	for _, a := range s.APIs {
		for _, line := range holds(p, a) {
			now = append(now, a.API+": "+line)
		}
	}
	return struct {
		app.QuotaStory
		Now   []string   `json:"now"`
		Notes []toldNote `json:"decisions"`
	}{s, now, notes}
}
