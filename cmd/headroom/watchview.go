package main

import (
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/spf13/cobra"

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

// progressText says how much of a job is done, and what it is about.
func progressText(j jobs.Job, s *app.Speed) string {
	return fmt.Sprintf("%d of %s, %s", j.Progress.Done(), total(j), doing(j, s))
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
	fmt.Fprintf(l.out, "%s %s %s\n", term.Time(now.at), nameOf(j), progressText(j, s))
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
	_ = term.WriteJSON(v.cmd.OutOrStdout(), change) // the output remembers
}

func (jsonView) close() {}

// bars shows a progress bar for each job on a terminal.
type bars struct {
	*term.Bars
	of map[string]*term.Bar
}

func newBars(out io.Writer, all []jobs.Job) bars {
	b := bars{term.NewBars(out), map[string]*term.Bar{}}
	for _, j := range all {
		b.of[j.ID] = b.Add()
	}
	return b
}

func (b bars) show(j jobs.Job, s *app.Speed) {
	one := b.of[j.ID]
	n, _ := app.Total(j)
	one.Say(nameOf(j) + ": " + doing(j, s))
	one.Set(j.Progress.Done(), n)
	if !j.State.Live() {
		one.End(j.Progress.Done(), n)
	}
}

func (b bars) close() { b.Close() }
