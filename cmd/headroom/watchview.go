package main

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"headroom/internal/app"
	"headroom/internal/term"
	"headroom/jobs"
)

// doing says what a job is about: state, what it waits for, time left.
func doing(j jobs.Job, s *app.Speed) string {
	text := stateText(j)
	if why := app.Waiting(j); why != "" {
		text += " for " + why
	}
	if left, known := s.ETA(j); known && j.State.Live() {
		text += fmt.Sprintf(", %s left at %.1f a second", left.Round(time.Second), s.PerSecond())
	}
	if j.State.Terminal() && j.Short() {
		text += ", but " + shortText(j)
	}
	if j.Progress.Failed > 0 {
		text += fmt.Sprintf(", %d failed", j.Progress.Failed)
	}
	return text
}

// lines prints a line when a job's state changes, and now and then between.
type lines struct {
	out  io.Writer
	told map[string]told
}

type told struct {
	state string
	done  int64
	at    time.Time
}

func (l *lines) show(j jobs.Job, s *app.Speed) {
	last, now := l.told[j.ID], told{stateText(j), j.Progress.Done(), time.Now()}
	if now.state == last.state && (now.done == last.done || now.at.Sub(last.at) < tellEvery) {
		return
	}
	l.told[j.ID] = now
	fmt.Fprintf(l.out, "%s %s %d of %s, %s\n", term.Time(now.at), nameOf(j), now.done, total(j), doing(j, s))
}

func (*lines) close() {}

// jsonView prints one object for each change of a row.
type jsonView struct {
	cmd  *cobra.Command
	last map[string]jobs.Job
}

func (v jsonView) show(j jobs.Job, s *app.Speed) {
	same := j
	same.UpdatedAt, same.LeaseUntil = time.Time{}, time.Time{} // a lease renewed is no news
	if last, seen := v.last[j.ID]; seen && reflect.DeepEqual(last, same) {
		return
	}
	v.last[j.ID] = same
	change := struct {
		jobs.Job
		Done       int64    `json:"done"`
		ETASeconds *float64 `json:"eta_seconds"` // null: not known
	}{Job: j, Done: j.Progress.Done()}
	if left, known := s.ETA(j); known {
		seconds := left.Seconds()
		change.ETASeconds = &seconds
	}
	_ = printJSON(v.cmd, change) // the output remembers
}

func (jsonView) close() {}

// bars shows a progress bar for each job on a terminal.
type bars struct {
	progress *mpb.Progress
	bars     map[string]*bar
}

type bar struct {
	*mpb.Bar
	name string
	text atomic.Pointer[string]
}

// textLines is how many lines above a bar say whose it is and what it is about.
const textLines = 2

// line fills one of the lines above a bar. What does not fit into all but the last
// one is cut there.
func (b *bar) line(n int) mpb.BarFillerFunc {
	return func(w io.Writer, stat decor.Statistics) error {
		lines := term.Wrap(b.name+" "+*b.text.Load(), stat.AvailableWidth)
		if n >= len(lines) {
			return nil
		}
		text := lines[n]
		if n == textLines-1 {
			text = strings.Join(lines[n:], " ")
		}
		_, err := fmt.Fprintln(w, term.Cut(text, stat.AvailableWidth))
		return err
	}
}

func newBars(out io.Writer, all []jobs.Job) *bars {
	b := &bars{progress: mpb.New(mpb.WithOutput(out), mpb.WithWidth(40), mpb.WithAutoRefresh()), bars: map[string]*bar{}}
	for _, j := range all {
		one := &bar{name: term.Clean(nameOf(j)) + ":"}
		one.text.Store(new(string))
		one.Bar = b.progress.AddBar(0,
			mpb.BarTopExtender(one.line(0), one.line(1)),
			mpb.PrependDecorators(decor.CountersNoUnit("%d/%d", decor.WCSyncSpaceR)),
			mpb.AppendDecorators(decor.Percentage(decor.WCSyncSpace)),
		)
		b.bars[j.ID] = one
	}
	return b
}

func (b *bars) show(j jobs.Job, s *app.Speed) {
	one := b.bars[j.ID]
	text := term.Clean(doing(j, s))
	one.text.Store(&text)
	n, _ := app.Total(j)
	one.SetTotal(n, false)
	one.SetCurrent(j.Progress.Done())
	if j.State.Live() {
		return
	}
	if j.Progress.Done() >= n {
		one.SetTotal(-1, true)
	} else {
		one.Abort(false)
	}
}

// close leaves the bars as they are and gives the terminal back.
func (b *bars) close() {
	for _, one := range b.bars {
		one.Abort(false)
	}
	b.progress.Wait()
}
