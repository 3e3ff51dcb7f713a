package term

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

const (
	barColumns = 40 // of a bar between its brackets
	textLines  = 2  // above a bar; a text that needs more is cut in the last one
)

// Bars are progress bars on a terminal, one below the other, which are redrawn until
// Close. Bars are added by one goroutine; several may set them. The methods of a nil
// *Bars and of a nil *Bar do nothing.
type Bars struct {
	progress *mpb.Progress
	all      []*Bar
}

// NewBars returns bars on out; nil if out is not a terminal.
func NewBars(out io.Writer) *Bars {
	if !IsTerminal(out) {
		return nil
	}
	return newBars(out)
}

func newBars(out io.Writer) *Bars {
	return &Bars{progress: mpb.New(mpb.WithOutput(Raw(out)), mpb.WithWidth(barColumns), mpb.WithAutoRefresh())}
}

// A Bar shows how far one thing is.
type Bar struct {
	bar  *mpb.Bar
	text atomic.Pointer[string]
}

// Add adds a bar below the others, with a text above it.
func (b *Bars) Add() *Bar {
	if b == nil {
		return nil
	}
	one := newBar()
	lines := make([]mpb.BarFiller, textLines)
	for n := range lines {
		lines[n] = one.line(n)
	}
	one.bar = b.progress.AddBar(0, mpb.BarTopExtender(lines...),
		mpb.PrependDecorators(decor.CountersNoUnit("%d/%d", decor.WCSyncSpaceR)),
		mpb.AppendDecorators(decor.Percentage(decor.WCSyncSpace)))
	b.all = append(b.all, one)
	return one
}

// AddTimed adds a bar on one line, with a name, and the time that is left.
func (b *Bars) AddTimed(name string) *Bar {
	if b == nil {
		return nil
	}
	one := newBar()
	one.bar = b.progress.AddBar(0, mpb.PrependDecorators(decor.Name(Clean(name)+" "), decor.CountersNoUnit("%d/%d")),
		mpb.AppendDecorators(decor.Percentage(), decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO)))
	b.all = append(b.all, one)
	return one
}

// AddLine adds a line of text below the bars.
func (b *Bars) AddLine() *Bar {
	if b == nil {
		return nil
	}
	one := newBar()
	one.bar = b.progress.New(0, mpb.NopStyle(), mpb.BarPriority(len(b.all)),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return *one.text.Load() })))
	b.all = append(b.all, one)
	return one
}

// Close stops redrawing; the bars stay as they are.
func (b *Bars) Close() {
	if b == nil {
		return
	}
	for _, one := range b.all {
		one.bar.Abort(false)
	}
	b.progress.Wait()
}

func newBar() *Bar {
	b := &Bar{}
	b.text.Store(new(string))
	return b
}

// Say sets the text above the bar, cleaned.
func (b *Bar) Say(text string) {
	if b != nil {
		text = Clean(text)
		b.text.Store(&text)
	}
}

// Set sets how much of a total is done.
func (b *Bar) Set(done, total int64) {
	if b != nil {
		b.bar.SetTotal(total, false)
		b.bar.SetCurrent(done)
	}
}

// End stops the bar, full only if everything is done.
func (b *Bar) End(done, total int64) {
	switch {
	case b == nil:
	case done >= total:
		b.bar.SetTotal(-1, true)
	default:
		b.bar.Abort(false)
	}
}

// line fills one of the lines above the bar.
func (b *Bar) line(n int) mpb.BarFillerFunc {
	return func(w io.Writer, stat decor.Statistics) error {
		lines := Wrap(*b.text.Load(), stat.AvailableWidth)
		if n >= len(lines) {
			return nil
		}
		text := lines[n]
		if n == textLines-1 {
			text = strings.Join(lines[n:], " ")
		}
		_, err := fmt.Fprintln(w, Cut(text, stat.AvailableWidth))
		return err
	}
}
