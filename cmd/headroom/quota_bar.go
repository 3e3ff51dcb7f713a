package main

import (
	"strings"

	"headroom/internal/app"
	"headroom/quota"
)

const barWidth = 50

// drawn is a text of ours with sequences for colours.
type drawn string

// mark is how a part of a bar looks.
type mark struct {
	sign   string
	colour string // as in ANSI's sequences
	means  string
}

// The marks of what each lane has spent, and of what is free to whom.
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

func (m mark) draw(p *page, n int) drawn {
	text := strings.Repeat(m.sign, n)
	if p.colours && n > 0 {
		return drawn("\x1b[" + m.colour + "m" + text + "\x1b[0m")
	}
	return drawn(text)
}

// windowBar draws a window: what each lane has spent, then what is free up to the
// ceilings of the lanes, from the lowest.
func windowBar(p *page, w app.QuotaWindow) drawn {
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
	return drawn(b.String())
}

// legend explains the bars.
func legend(p *page) drawn {
	var parts []string
	add := func(m mark) { parts = append(parts, string(m.draw(p, 1))+" "+m.means) }
	for _, lane := range quota.Lanes {
		add(spentMarks[lane])
	}
	add(unknownMark)
	for _, lane := range []quota.Lane{quota.Backfill, quota.Sync, quota.Interactive} {
		add(freeMarks[lane])
	}
	add(closedMark)
	return drawn(strings.Join(parts, "  "))
}
