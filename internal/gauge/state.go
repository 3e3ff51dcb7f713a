package gauge

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"headroom/internal/control/quotaview"
	"headroom/internal/term"
	"headroom/quota"
)

// WriteState writes the quota of an account or a project.
func WriteState(p *term.Page, s quotaview.QuotaState) {
	p.Now = s.At
	if s.Account != "" {
		p.Line("%s in project %s, %s", s.Account, s.Project, p.Clock(s.At))
	} else {
		p.Line("project %s, %s", s.Project, p.Clock(s.At))
	}
	for _, a := range s.APIs {
		p.Line("\n%s (%s)", a.API, a.Prices)
		for _, w := range a.Windows {
			writeWindow(p, w)
		}
		rows := p.Grid("  ")
		for _, row := range facts(p, s, a) {
			rows.Row(row[0], row[1])
		}
		_ = rows.Flush() // a page takes everything
	}
	writeWaiting(p, s)
	p.Line("")
	writeLegend(p)
}

func writeWindow(p *term.Page, w quotaview.QuotaWindow) {
	p.Line("  %-15s [%s] %s of %s used", w.Limit, windowBar(p, w), humanize.Comma(w.Used), humanize.Comma(w.Units))
	var parts []string
	for _, lane := range quota.Lanes {
		parts = append(parts, fmt.Sprintf("%s %s", lane, humanize.Comma(w.Spent[lane])))
	}
	if w.Unknown > 0 {
		parts = append(parts, "unknown lane "+humanize.Comma(w.Unknown))
	}
	p.Line("    spent by %s", strings.Join(parts, ", "))
	t := p.Grid("    ")
	for _, l := range w.Lanes {
		t.Row(l.Lane, humanize.Comma(l.Left)+" left", fmt.Sprintf("to its ceiling of %s (%s)", humanize.Comma(l.Ceiling), percent(l.Ceiling, w.Units)), l.Source)
	}
	_ = t.Flush()
}

func percent(part, whole int64) string {
	return fmt.Sprintf("%.3g %%", 100*float64(part)/float64(whole))
}

// dayText is how much of a day's budget is used, and whether it binds.
func dayText(p *term.Page, d quotaview.QuotaDay) string {
	text := fmt.Sprintf("%s of %s units of the project's budget used, %s", humanize.Comma(d.Used), humanize.Comma(d.Budget), p.Until(d.Ends))
	switch {
	case !d.Pauses:
		text += "; it binds nobody"
	case d.Allowed < d.Budget:
		text += fmt.Sprintf("; backfills may have come to %s by now", humanize.Comma(d.Allowed))
	}
	return text
}

// facts are the properties of an API beside its windows, each with a name.
func facts(p *term.Page, s quotaview.QuotaState, a quotaview.APIQuota) [][2]string {
	var rows [][2]string
	add := func(name, format string, args ...any) {
		rows = append(rows, [2]string{name, fmt.Sprintf(format, args...)})
	}
	if a.Day != nil {
		add("day", "%s", dayText(p, *a.Day))
	}
	for _, line := range closed(p, a) {
		add("cooldown", "%s", line)
	}
	if !a.OfAll.UnknownUntil.IsZero() {
		add("unknown", "Redis is new or lost its data; sync and backfill hold %s, or as long from their first call if there was none yet", p.Until(a.OfAll.UnknownUntil))
	}
	if f := a.Flight; f != nil {
		text := fmt.Sprintf("%d of %s", f.InFlight, byLane(f.Caps, func(n int64) string { return fmt.Sprint(n) }))
		if f.Learned > 0 {
			text += fmt.Sprintf("; Google allows %d, one more is tried %s", f.Learned, cmp.Or(zeroOr(f.CalmUntil, p), "with the next call"))
		}
		add("in flight", "%s", text)
	}
	if b := a.Bytes; b != nil {
		add("bytes, 24 h", "%s of %s", humanize.Bytes(uint64(b.Used)), byLane(b.Caps, func(n int64) string { return humanize.Bytes(uint64(n)) }))
	}
	if text := settings(a.Settings, s.Account); text != "" {
		add("set live", "%s", text)
	}
	if t := a.Spenders; t != nil {
		text := fmt.Sprintf("%d in the last minute", t.Accounts)
		for i, top := range t.Top {
			text += fmt.Sprintf("%s %s %s", separator(i), top.User, humanize.Comma(top.Units))
		}
		add("accounts", "%s", text)
	}
	return rows
}

func separator(i int) string {
	if i == 0 {
		return "; most by"
	}
	return ","
}

func zeroOr(t time.Time, p *term.Page) string {
	if t.IsZero() {
		return ""
	}
	return "at " + p.Clock(t)
}

// byLane lists a number of each lane.
func byLane(caps map[quota.Lane]int64, text func(int64) string) string {
	var parts []string
	for _, lane := range quota.Lanes {
		parts = append(parts, fmt.Sprintf("%s (%s)", text(caps[lane]), lane))
	}
	return strings.Join(parts, ", ")
}

// closed lists the cooldowns and the ceilings that are lowered; "none" if there are none.
func closed(p *term.Page, a quotaview.APIQuota) []string {
	var lines []string
	for _, of := range []struct {
		who   string
		scope *quotaview.ScopeQuota
	}{{"the account", a.User}, {"the project", &a.OfAll}} {
		if of.scope == nil {
			continue
		}
		if of.scope.ClosedUntil.After(p.Now) {
			text := fmt.Sprintf("Google refused: %s is closed to every lane %s", of.who, p.Until(of.scope.ClosedUntil))
			if c := of.scope.Cooldown; c != nil && c.Scope != quota.ScopeNone {
				text += ", by " + c.String()
			}
			lines = append(lines, text)
		}
		if of.scope.Share < 1 {
			lines = append(lines, fmt.Sprintf("Google refused: %s may use %.0f %% of its ceilings, recovering", of.who, 100*of.scope.Share))
		}
	}
	for _, c := range a.Features {
		lines = append(lines, fmt.Sprintf("Google refused: %s is closed to the account %s, everything else is open; by %s", c.Feature, p.Until(c.Until), c))
	}
	if lines == nil {
		lines = []string{"none"}
	}
	return lines
}

// settings lists the live settings of the project and of the account. For a project it
// counts the accounts that have settings of their own.
func settings(v quota.Live, account string) string {
	if v.Revision == 0 {
		return ""
	}
	var parts []string
	if v.Mode != "" {
		parts = append(parts, "mode="+string(v.Mode))
	}
	others := map[string]bool{}
	for _, c := range v.Changes {
		if c.User == "" || account != "" && strings.EqualFold(c.User, account) {
			parts = append(parts, c.String())
		} else {
			others[strings.ToLower(c.User)] = true
		}
	}
	if len(others) > 0 && account == "" {
		parts = append(parts, fmt.Sprintf("%d account(s) with settings of their own", len(others)))
	}
	if parts == nil {
		parts = []string{"nothing that holds here"}
	}
	return fmt.Sprintf("%s (revision %d)", strings.Join(parts, ", "), v.Revision)
}

// maxShownJobs is how many waiting jobs are shown.
const maxShownJobs = 20

func writeWaiting(p *term.Page, s quotaview.QuotaState) {
	p.Line("\nwaiting")
	t := p.Grid("  ")
	n := 0
	for i, j := range s.Jobs {
		n++
		if i < maxShownJobs {
			t.Row(j.ID, "for "+j.For, p.Until(j.Until))
		}
	}
	if more := len(s.Jobs) - maxShownJobs; more > 0 {
		t.Row(fmt.Sprintf("and %d more jobs", more))
	}
	for _, a := range s.APIs {
		for _, w := range a.Waiting {
			n++
			how := "calls that were sent away"
			if w.Waits {
				how = "calls in place"
			}
			if w.Process != "" {
				how += " in " + w.Process
			}
			t.Row(string(w.Lane)+", "+how, fmt.Sprintf("for %s of %s (%s)", w.Limit, a.API, w.Bound),
				fmt.Sprintf("refused %s lately, waits of up to %s", often(w.Calls), milliseconds(w.Wait)))
		}
	}
	if n == 0 {
		t.Row("nobody")
	}
	_ = t.Flush()
}

func often(n int64) string {
	if n == 1 {
		return "once"
	}
	return humanize.Comma(n) + " times"
}

// milliseconds formats a wait.
func milliseconds(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}
