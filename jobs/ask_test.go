package jobs_test

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/jobs"
)

// syncJobs are the jobs that a sync may have, in each state.
var syncJobs = []struct {
	name string
	job  *jobs.Job
}{
	{"never ran", nil},
	{"queued", &jobs.Job{State: jobs.Queued}},
	{"running", &jobs.Job{State: jobs.Running, LeaseUntil: noon.Add(time.Second)}},
	{"cancel requested", &jobs.Job{State: jobs.Running, LeaseUntil: noon.Add(time.Second), Wanted: jobs.Cancelled}},
	{"waits for items", &jobs.Job{State: jobs.Waiting}},
	{"waits for quota", &jobs.Job{State: jobs.Waiting, Refusals: 1}},
	{"waits after a fault", &jobs.Job{State: jobs.Waiting, Failures: 1}},
	{"paused", &jobs.Job{State: jobs.Paused}},
	{"blocked", &jobs.Job{State: jobs.Blocked}},
	{"completed", &jobs.Job{State: jobs.Completed}},
	{"partly completed", &jobs.Job{State: jobs.CompletedWithFailures}},
	{"cancelled", &jobs.Job{State: jobs.Cancelled}},
	{"failed", &jobs.Job{State: jobs.Failed}},
}

var (
	reasons = map[jobs.DueReason]string{jobs.NotDue: "-", jobs.DueAsked: "asked", jobs.DueCrawl: "crawl", jobs.DueResume: "resume"}
	starts  = map[jobs.SyncStart]string{jobs.StartNothing: "-", jobs.StartFirst: "first", jobs.StartOver: "over",
		jobs.StartAtOnce: "at once", jobs.StartLater: "later"}
)

// What is due, whether a schedule may ask, and what starting comes to, for each state
// of the job: of a mailbox that was asked for, is crawled, or may resume reading, and
// of calendars.
const asks = `
                     asked  crawled  resumes  schedule asks  start    due, asked  due, unasked
never ran            asked  crawl    -        true           first    first       first
queued               -      -        -        true           later    later       later
running              -      -        -        true           later    later       later
cancel requested     -      -        -        false          later    later       later
waits for items      asked  -        resume   true           at once  at once     at once
waits for quota      -      -        -        true           later    later       later
waits after a fault  -      -        -        true           later    later       later
paused               -      -        -        false          -        -           -
blocked              asked  -        -        false          over     over        -
completed            asked  crawl    resume   true           over     over        over
partly completed     asked  crawl    resume   true           over     over        over
cancelled            asked  -        -        false          over     over        -
failed               asked  crawl    resume   true           over     over        over

                     calendars asked  resumes  schedule asks  start    due, asked  due, unasked
never ran            asked            -        true           first    first       first
queued               -                -        true           later    later       later
running              -                -        true           later    later       later
cancel requested     -                -        false          later    later       later
waits for items      asked            -        true           at once  at once     later
waits for quota      asked            -        true           at once  at once     later
waits after a fault  -                -        true           later    later       later
paused               -                -        false          -        -           -
blocked              asked            -        false          over     over        -
completed            asked            resume   true           over     over        over
partly completed     asked            resume   true           over     over        over
cancelled            asked            -        false          over     over        -
failed               asked            resume   true           over     over        over
`

func TestAsksInEveryState(t *testing.T) {
	old := noon.Add(-2 * time.Hour)
	reading := jobs.Snapshot{Phase: jobs.SnapshotIDs, NextTry: noon}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "\n\tasked\tcrawled\tresumes\tschedule asks\tstart\tdue, asked\tdue, unasked\n")
	for _, s := range syncJobs {
		asked := jobs.MailAsk{Cursor: jobs.Cursor{AskedAt: old, BegunAt: old}, Job: s.job}
		crawled := jobs.MailAsk{Cursor: jobs.Cursor{BegunAt: old}, Job: s.job, Crawled: true}
		resumes := jobs.MailAsk{Cursor: jobs.Cursor{BegunAt: old, Snapshot: reading}, Job: s.job}
		unasked := jobs.MailAsk{Job: s.job}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%t\t%s\t%s\t%s\n", s.name, reasons[asked.Due(noon)], reasons[crawled.Due(noon)], reasons[resumes.Due(noon)],
			(&jobs.MailAsk{Job: s.job}).Ask(noon), starts[unasked.Start(false)], starts[asked.Start(true)], starts[unasked.Start(true)])
	}
	w.Flush()
	w = tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "\n\tcalendars asked\tresumes\tschedule asks\tstart\tdue, asked\tdue, unasked\n")
	for _, s := range syncJobs {
		asked := jobs.CalendarAsk{List: jobs.CalendarList{AskedAt: old, Listed: true}, Job: s.job}
		resumes := jobs.CalendarAsk{List: jobs.CalendarList{ResumeAt: noon, Listed: true}, Job: s.job}
		unasked := jobs.CalendarAsk{List: jobs.CalendarList{Listed: true}, Job: s.job}
		fmt.Fprintf(w, "%s\t%s\t%s\t%t\t%s\t%s\t%s\n", s.name, reasons[asked.Due(noon)], reasons[resumes.Due(noon)],
			(&jobs.CalendarAsk{Job: s.job}).Ask(noon, false), starts[asked.Start(false)], starts[asked.Start(true)], starts[unasked.Start(true)])
	}
	w.Flush()
	var got []string
	for line := range strings.SplitSeq(table.String(), "\n") {
		got = append(got, strings.TrimRight(line, " "))
	}
	if diff := cmp.Diff(strings.Split(asks, "\n"), got); diff != "" {
		t.Errorf("asks differ (-want +got):\n%s", diff)
	}
}

func TestWhenACrawledOrResumedSyncIsDue(t *testing.T) {
	ended := &jobs.Job{State: jobs.Completed}
	reading := func(next time.Time) jobs.Snapshot { return jobs.Snapshot{Phase: jobs.SnapshotIDs, NextTry: next} }
	tooOld := jobs.Cursor{Reconcile: true, ReconcileReason: jobs.HistoryTooOld, ReconciledAt: noon.Add(-time.Hour)}
	backwards, gap, asked, long := tooOld, tooOld, tooOld, tooOld
	backwards.ReconcileReason = jobs.HistoryBackwards
	gap.Snapshot.Gap = true
	asked.Snapshot.Asked = true
	long.ReconciledAt = noon.Add(-jobs.ReconcileEvery)
	for _, c := range []struct {
		name string
		ask  jobs.MailAsk
		want jobs.DueReason
	}{
		{"crawled, read an hour ago", jobs.MailAsk{Cursor: jobs.Cursor{BegunAt: noon.Add(-jobs.CrawlAdvance)}, Crawled: true}, jobs.DueCrawl},
		{"crawled, read less than an hour ago", jobs.MailAsk{Cursor: jobs.Cursor{BegunAt: noon.Add(time.Second - jobs.CrawlAdvance)}, Crawled: true}, jobs.NotDue},
		{"crawled, its history too old", jobs.MailAsk{Cursor: tooOld, Crawled: true}, jobs.NotDue},
		{"crawled, its history too old for a day", jobs.MailAsk{Cursor: long, Crawled: true}, jobs.DueCrawl},
		{"crawled, its history runs backwards", jobs.MailAsk{Cursor: backwards, Crawled: true}, jobs.DueCrawl},
		{"crawled, being read from the pinned id", jobs.MailAsk{Cursor: gap, Crawled: true}, jobs.DueCrawl},
		{"crawled, asked to be read as a whole", jobs.MailAsk{Cursor: asked, Crawled: true}, jobs.DueCrawl},
		{"to be read on now", jobs.MailAsk{Cursor: jobs.Cursor{Snapshot: reading(noon)}, Job: ended}, jobs.DueResume},
		{"to be read on later", jobs.MailAsk{Cursor: jobs.Cursor{Snapshot: reading(noon.Add(time.Second))}, Job: ended}, jobs.NotDue},
		{"to be read on with the next sync", jobs.MailAsk{Cursor: jobs.Cursor{Snapshot: reading(time.Time{})}, Job: ended}, jobs.NotDue},
		{"to be read on, begun a second ago", jobs.MailAsk{Cursor: jobs.Cursor{BegunAt: noon.Add(-time.Second), Snapshot: reading(noon)}, Job: ended}, jobs.NotDue},
		{"neither", jobs.MailAsk{Cursor: jobs.Cursor{}, Job: ended}, jobs.NotDue},
	} {
		if got := c.ask.Due(noon); got != c.want {
			t.Errorf("%s: due %q, want %q", c.name, reasons[got], reasons[c.want])
		}
	}
}

func TestAnAskDatesFromTheFirstRequest(t *testing.T) {
	running := &jobs.Job{State: jobs.Running, Checkpoint: jobs.Checkpoint{Listed: true}}
	m := jobs.MailAsk{Cursor: jobs.Cursor{HistoryID: 5}, Job: running}
	for i, want := range []jobs.PushOutcome{jobs.PushKnown, jobs.PushAsked, jobs.PushAsked} {
		if got := m.Push(uint64(5+i), noon.Add(time.Duration(i)*time.Minute)); got != want {
			t.Errorf("push of %d came to %q, want %q", 5+i, got, want)
		}
	}
	if first := noon.Add(time.Minute); !m.Cursor.AskedAt.Equal(first) || running.Checkpoint.Listed {
		t.Errorf("asked at %v, want %v, and the running sync to read the history again", m.Cursor.AskedAt, first)
	}
	if c := m.Cursor.BeginSync(noon); !c.AskedAt.IsZero() || !c.BegunAt.Equal(noon) {
		t.Errorf("a sync that begins leaves the ask: %+v", c)
	}

	var l jobs.CalendarList
	l.Ask(noon, true)
	l.Ask(noon.Add(time.Minute), false)
	if !l.AskedAt.Equal(noon) || !l.AskedAll {
		t.Errorf("asked at %v, all %t, want the first request and all of the two", l.AskedAt, l.AskedAll)
	}
	if all := l.BeginRound(noon); !all || l.AskedAll || l.Round != 1 || l.Listed {
		t.Errorf("the round begins with all %t, then %+v", all, l)
	}
	if l.BeginRound(noon.Add(time.Hour)); l.Round != 1 || !l.BegunAt.Equal(noon) {
		t.Errorf("a round that nobody asked for began: %+v", l)
	}
}

func TestARoundThatLeftCalendarsResumesWhenTheFirstMayBeReadAgain(t *testing.T) {
	left := func(state jobs.CalendarState, round int64, next time.Time) jobs.Calendar {
		return jobs.Calendar{State: state, Round: round, Stream: jobs.Stream{NextTry: next}}
	}
	in := func(d time.Duration) time.Time { return noon.Add(d) }
	for _, c := range []struct {
		name      string
		list      jobs.CalendarList
		calendars []jobs.Calendar
		want      time.Time
	}{
		{"none left", jobs.CalendarList{Round: 3, Listed: true}, []jobs.Calendar{left(jobs.CalendarSynced, 3, in(time.Hour))}, time.Time{}},
		{"two left", jobs.CalendarList{Round: 3, Listed: true},
			[]jobs.Calendar{left(jobs.CalendarFailing, 2, in(time.Hour)), left(jobs.CalendarExpired, 2, in(time.Minute))}, in(time.Minute)},
		{"one removed", jobs.CalendarList{Round: 3, Listed: true}, []jobs.Calendar{left(jobs.CalendarRemoved, 2, in(time.Hour))}, time.Time{}},
		{"the list left", jobs.CalendarList{Round: 3, Stream: jobs.Stream{NextTry: in(time.Second)}},
			[]jobs.Calendar{left(jobs.CalendarFailing, 2, in(time.Hour))}, in(time.Second)},
	} {
		if c.list.EndRound(c.calendars, noon); !c.list.ResumeAt.Equal(c.want) || !c.list.SyncedAt.Equal(noon) {
			t.Errorf("%s: resumes at %v, want %v", c.name, c.list.ResumeAt, c.want)
		}
	}
}
