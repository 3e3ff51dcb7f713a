package gauge

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"headroom/internal/control/quotaview"
	"headroom/internal/term"
	"headroom/quota"
)

// WriteStory writes the last decisions about an account, below what holds now.
func WriteStory(p *term.Page, s quotaview.QuotaStory) {
	p.Now = s.At
	p.Line("%s in project %s, %s", s.Account, s.Project, p.Clock(s.At))
	for _, a := range s.APIs {
		for _, line := range holds(p, a) {
			p.Line("  %s: %s", a.API, line)
		}
	}
	p.Line("")
	if len(s.Notes) == 0 {
		p.Line("no decision is known of")
	}
	for _, n := range s.Notes {
		p.Line("%s", noteText(p, n))
	}
}

// holds lists what applies to an account now, and which lanes may go on.
func holds(p *term.Page, a quotaview.APIQuota) []string {
	var lines []string
	if c := closed(p, a); c[0] != "none" {
		lines = c
	}
	for _, s := range []*quotaview.ScopeQuota{a.User, &a.OfAll} {
		if s != nil && s.ClosedUntil.After(p.Now) {
			return append(lines, "nobody may go on before that")
		}
	}
	// left is the units that are left to a lane, and the limit that allows the fewest.
	left := func(lane int) (units int64, limit string) {
		units = -1
		for _, w := range a.Windows {
			if l := w.Lanes[lane]; units < 0 || l.Left < units {
				units, limit = l.Left, w.Limit
			}
		}
		return units, limit
	}
	if a.OfAll.UnknownUntil.After(p.Now) {
		units, limit := left(0)
		return append(lines, fmt.Sprintf("Redis is new or lost its data, so sync and backfill hold %s, or as long from their first call if there was none yet; interactive goes on within what their ceilings leave: %s units (%s)",
			p.Until(a.OfAll.UnknownUntil), humanize.Comma(units), limit))
	}
	var may []string
	for i, lane := range quota.Lanes {
		units, limit := left(i)
		may = append(may, fmt.Sprintf("%s %s (%s)", lane, humanize.Comma(units), limit))
	}
	return append(lines, "open; units left now: "+strings.Join(may, ", "))
}

// sentence describes a decision.
func sentence(p *term.Page, n quota.Note) string {
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
			return fmt.Sprintf("%s; %s closed until %s", text, n.Feature, p.Clock(n.Until))
		}
		return text + "; closed until " + p.Clock(n.Until)
	}
	return fmt.Sprintf("%s %s", n.Kind, count)
}

// because names what refused a call.
func because(n quota.Note) string {
	used := fmt.Sprintf(" (%s of %s used)", humanize.Comma(n.Used), humanize.Comma(n.Ceiling))
	switch n.Bound {
	case quota.BoundHold:
		if n.Scope != quota.ScopeNone {
			return quota.Cooldown{Scope: n.Scope, Feature: n.Feature, Reason: n.Reason, Words: n.Words}.String()
		}
		return "the cooldown of " + n.Limit
	case quota.BoundUnknown:
		return "the hold after Redis lost its data"
	case quota.BoundPace:
		return "the pace of " + n.Limit + used
	}
	return fmt.Sprintf("the %s of %s%s", n.Bound, n.Limit, used)
}

// decision is a decision as JSON, with its sentence.
type decision struct {
	Text string     `json:"text"`
	Note quota.Note `json:"decision"`
}

// StoryJSON is the story as it is printed as JSON: with a sentence for each decision,
// in UTC.
func StoryJSON(s quotaview.QuotaStory) any {
	p := &term.Page{Zone: time.UTC, Now: s.At}
	notes := make([]decision, len(s.Notes))
	for i, n := range s.Notes {
		notes[i] = decision{noteText(p, n), n}
	}
	now := []string{}
	for _, a := range s.APIs {
		for _, line := range holds(p, a) {
			now = append(now, a.API+": "+line)
		}
	}
	return struct {
		quotaview.QuotaStory
		Now   []string   `json:"now"`
		Notes []decision `json:"decisions"`
	}{s, now, notes}
}

// noteText is a decision on one line.
func noteText(p *term.Page, n quota.Note) string {
	return fmt.Sprintf("%s %s %s: %s", p.Clock(n.At), n.API, n.Lane, sentence(p, n))
}
