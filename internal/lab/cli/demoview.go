package cli

import (
	"fmt"
	"io"
	"time"

	"headroom/internal/control/progress"
	"headroom/internal/lab/demo"
	"headroom/internal/lab/traffic"
	"headroom/internal/term"
)

// demoView shows a demo as it goes.
type demoView interface {
	show(demo.Snapshot)
	close()
}

func peopleText(p traffic.Figures) string {
	return fmt.Sprintf("%d calls, %d denied, quota's answer in %s (median) %s (p99)", p.Calls, p.Denied,
		p.WaitP50.Round(100*time.Microsecond), p.WaitP99.Round(100*time.Microsecond))
}

// demoLines prints a line for each mailbox and one for the people now and then.
type demoLines struct {
	r      Root
	out    io.Writer
	began  time.Time
	last   time.Time
	speeds []progress.Speed
}

func (l *demoLines) show(s demo.Snapshot) {
	now := time.Now()
	if l.began.IsZero() {
		l.began = now
		l.speeds = make([]progress.Speed, len(s.Jobs))
	}
	ended := true
	for i, j := range s.Jobs {
		l.speeds[i].Look(now, j)
		ended = ended && j.State.Terminal()
	}
	if now.Sub(l.last) < tellEvery && !ended {
		return
	}
	if ended && l.last.Equal(time.Unix(1, 0)) {
		return
	}
	l.last = now
	if ended {
		l.last = time.Unix(1, 0) // said once
	}
	at := now.Sub(l.began).Seconds()
	for i, j := range s.Jobs {
		fmt.Fprintf(l.out, "%5.1fs  %-18s %s\n", at, j.Account, l.r.Progress(j, &l.speeds[i]))
	}
	fmt.Fprintf(l.out, "%5.1fs  %-18s %s\n", at, "people", peopleText(s.People))
}

func (*demoLines) close() {}

// demoBars shows a bar for each mailbox and a line for the people.
type demoBars struct {
	r      Root
	out    io.Writer
	bars   *term.Bars
	jobs   []*term.Bar
	people *term.Bar
	speeds []progress.Speed
}

func (b *demoBars) show(s demo.Snapshot) {
	if b.bars == nil {
		b.bars = term.NewBars(b.out)
		for range s.Jobs {
			b.jobs = append(b.jobs, b.bars.Add())
		}
		b.people = b.bars.AddLine()
		b.speeds = make([]progress.Speed, len(s.Jobs))
	}
	now := time.Now()
	for i, j := range s.Jobs {
		b.speeds[i].Look(now, j)
		n, _ := progress.Total(j)
		b.jobs[i].Say(j.Account + ": " + b.r.Doing(j, &b.speeds[i]))
		b.jobs[i].Set(j.Progress.Done(), n)
		if !j.State.Live() {
			b.jobs[i].End(j.Progress.Done(), n)
		}
	}
	b.people.Say("people " + peopleText(s.People))
}

func (b *demoBars) close() { b.bars.Close() }
