package gauge

import (
	"strings"

	"headroom/internal/control/quotaview"
	"headroom/internal/term"
	"headroom/quota"
)

const barWidth = 50

// A mark shows one part of a bar.
type mark struct {
	sign   string
	colour string // as in ANSI's sequences
	means  string
}

// The marks for the units that each lane has spent, and for those that are free.
var (
	spentMarks = map[quota.Lane]mark{
		quota.Interactive: {"i", "36", "interactive"},
		quota.Sync:        {"s", "33", "sync"},
		quota.Backfill:    {"b", "34", "backfill"},
	}
	unknownMark = mark{"?", "35", "unknown lane"}
	freeMarks   = map[quota.Lane]mark{
		quota.Backfill:    {".", "32", "free to all"},
		quota.Sync:        {"-", "32", "not to backfill"},
		quota.Interactive: {"+", "32", "to interactive only"},
	}
	closedMark = mark{"x", "31", "to nobody"}
)

func (m mark) draw(p *term.Page, n int) term.Drawn {
	return p.Paint(m.colour, strings.Repeat(m.sign, n))
}

// windowBar draws a window: the units that each lane has spent, then those that are free
// below the ceiling of each lane, from the lowest.
func windowBar(p *term.Page, w quotaview.QuotaWindow) term.Drawn {
	var b strings.Builder
	var units int64 // drawn so far
	at := 0         // and their columns
	draw := func(m mark, more int64) {
		units += max(0, more)
		end := min(barWidth, int((2*units*barWidth+w.Units)/(2*w.Units))) // rounded
		b.WriteString(string(m.draw(p, max(0, end-at))))
		at = max(at, end)
	}
	for _, lane := range quota.Lanes {
		draw(spentMarks[lane], w.Spent[lane])
	}
	draw(unknownMark, w.Unknown)
	for i := len(quota.Lanes) - 1; i >= 0; i-- {
		for _, l := range w.Lanes {
			if l.Lane == quota.Lanes[i] {
				draw(freeMarks[l.Lane], w.Used+l.Left-units)
			}
		}
	}
	draw(closedMark, w.Units-units)
	return term.Drawn(b.String())
}

// writeLegend explains the marks, on as many lines as it needs.
func writeLegend(p *term.Page) {
	marks := []mark{spentMarks[quota.Interactive], spentMarks[quota.Sync], spentMarks[quota.Backfill], unknownMark,
		freeMarks[quota.Backfill], freeMarks[quota.Sync], freeMarks[quota.Interactive], closedMark}
	texts, columns := make([]term.Drawn, len(marks)), make([]int, len(marks))
	for i, m := range marks {
		texts[i] = m.draw(p, 1) + term.Drawn(" "+m.means)
		columns[i] = len(m.sign + " " + m.means)
	}
	p.Flow(texts, columns)
}
