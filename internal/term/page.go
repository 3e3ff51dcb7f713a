package term

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"time"
)

// A Page is a text that is written to a terminal as a whole. The zero Page has no
// colours and any width.
type Page struct {
	bytes.Buffer
	Colours bool
	Width   int            // of the terminal; 0: no bound
	Zone    *time.Location // of all moments; the local one if nil
	Now     time.Time      // the start of the durations that Until shows
}

// Drawn is a text that may contain colours of [Page.Paint].
type Drawn string

// Line writes a formatted line. It cleans strings among args, but not a [Drawn].
func (p *Page) Line(format string, args ...any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = Clean(text)
		}
	}
	fmt.Fprintf(p, format+"\n", args...)
}

// Grid returns a grid on the page, whose rows are indented.
func (p *Page) Grid(indent string) *Grid { return &Grid{out: p, Width: p.Width, Indent: indent} }

// Paint returns text in a colour, given by its ANSI number, if the page has colours.
func (p *Page) Paint(colour, text string) Drawn {
	if p.Colours && text != "" {
		text = "\x1b[" + colour + "m" + text + "\x1b[0m"
	}
	return Drawn(text)
}

// Flow writes texts side by side, on as many lines as they need. columns are their
// widths on a terminal.
func (p *Page) Flow(texts []Drawn, columns []int) {
	at := 0
	for i, text := range texts {
		switch {
		case i == 0:
		case p.Width > 0 && at+len(gap)+columns[i] > p.Width:
			p.WriteByte('\n')
			at = 0
		default:
			p.WriteString(gap)
			at += len(gap)
		}
		p.WriteString(string(text))
		at += columns[i]
	}
	p.WriteByte('\n')
}

// Clock is a moment in the page's zone.
func (p *Page) Clock(t time.Time) string {
	if p.Zone == nil {
		return Time(t)
	}
	return TimeIn(t, p.Zone)
}

// Until is a moment and the time until then.
func (p *Page) Until(t time.Time) string {
	left := max(0, t.Sub(p.Now))
	round := 100 * time.Millisecond
	if left > 10*time.Second {
		round = time.Second
	}
	return fmt.Sprintf("until %s (in %s)", p.Clock(t), left.Round(round))
}

// A Screen shows one page after the other: in place of the one before on a terminal
// with colours, otherwise below it.
type Screen struct {
	out     io.Writer
	colours bool
	replace bool
	shown   bool
}

// NewScreen returns a screen on out. With watch, pages replace each other.
func NewScreen(out io.Writer, watch bool) *Screen {
	colours := IsTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return &Screen{out: out, colours: colours, replace: watch && colours}
}

// Show shows the page that write writes.
func (s *Screen) Show(write func(*Page)) error {
	p := &Page{Colours: s.colours, Width: Width(s.out)}
	switch {
	case s.replace:
		p.WriteString("\x1b[H\x1b[2J")
	case s.shown:
		p.WriteString("\n")
	}
	s.shown = true
	write(p)
	_, err := Raw(s.out).Write(p.Bytes())
	return err
}
