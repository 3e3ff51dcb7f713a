package jobs

import "time"

// An ask is a request for a sync that has not begun. It is kept beside what the sync
// reads, as AskedAt of a [Cursor] or a [CalendarList], and it dates from the first
// request. This file decides who may ask, when a sync is due, and what starting it
// comes to; a store loads a [MailAsk] or a [CalendarAsk], calls these methods on
// its clock, and saves what changed.

// A DueReason says why a sync is to start now. What has the lower reason starts first.
type DueReason int

// The reasons.
const (
	NotDue    DueReason = iota
	DueAsked            // it was asked for
	DueCrawl            // a backfill of the mailbox runs, and the history may grow too old meanwhile
	DueResume           // something that was left alone may be read again
)

// A SyncStart is what starting a sync comes to.
type SyncStart int

// The ways to start a sync.
const (
	StartNothing SyncStart = iota // it rests, until somebody resumes or starts it
	StartFirst                    // it never ran: there is no job yet
	StartOver                     // it has ended, and runs again: [Job.Restart]
	StartAtOnce                   // it waits for what the new request need not wait for: [Job.Wake]
	StartLater                    // it is under way: the request is answered by this run or the next
)

const (
	// CrawlAdvance is how often the history is read while a backfill runs, however
	// rarely schedules ask for it: a cursor may grow too old within hours.
	CrawlAdvance = time.Hour
	// resumePause is the least time between the beginnings of two syncs of which the
	// second only goes on with reading the whole mailbox.
	resumePause = 3 * time.Second
)

// A MailAsk is what decides when the live sync of a mailbox runs.
type MailAsk struct {
	Cursor  Cursor
	Job     *Job // nil: it never ran
	Crawled bool // a backfill of the account is live
}

// A CalendarAsk is what decides when the sync of an account's calendars runs.
type CalendarAsk struct {
	List        CalendarList
	Job         *Job // nil: it never ran
	ChangesLeft bool // the round has yet to read what changed in a calendar
}

// Due says whether and why the sync is to start now.
func (s MailAsk) Due(now time.Time) DueReason {
	c := s.Cursor
	switch {
	case !c.AskedAt.IsZero():
		if answers(s.Job, s.idle()) {
			return DueAsked
		}
	case s.Crawled && (s.Job == nil || begins(s.Job)) && !now.Before(c.BegunAt.Add(CrawlAdvance)) && !c.standsStill(now):
		return DueCrawl
	case !c.ReadingFrom().IsZero() && c.Due(now) && !now.Before(c.BegunAt.Add(resumePause)) && s.Job != nil && (begins(s.Job) || s.idle()):
		return DueResume
	}
	return NotDue
}

// Due says whether and why the sync is to start now.
func (s CalendarAsk) Due(now time.Time) DueReason {
	l := s.List
	switch {
	case !l.AskedAt.IsZero():
		if answers(s.Job, s.onlyWhole()) {
			return DueAsked
		}
	case !l.ResumeAt.IsZero() && !now.Before(l.ResumeAt) && s.Job != nil && begins(s.Job):
		return DueResume
	}
	return NotDue
}

// answers reports whether a sync can start because it was asked for.
func answers(j *Job, wakes bool) bool {
	return j == nil || wakes || !j.State.Live() && j.State != Paused
}

// begins reports whether a sync that has ended may start without being asked.
func begins(j *Job) bool { return !j.State.Live() && !j.State.Rests() }

// idle reports whether the sync waits only for items that are tried again later. The
// history need not wait for these.
func (s MailAsk) idle() bool {
	j := s.Job
	return j != nil && j.State == Waiting && j.Wanted == "" && j.LeaseUntil.IsZero() && j.Refusals == 0 && j.Failures == 0
}

// onlyWhole reports whether the sync waits for quota, and only calendars that are
// read as a whole are left of its round: these wait in lane backfill, for which
// changes of other calendars need not wait.
func (s CalendarAsk) onlyWhole() bool {
	j := s.Job
	return j != nil && j.State == Waiting && j.LeaseUntil.IsZero() && j.Failures == 0 && s.List.Listed && !s.ChangesLeft
}

// Start says what starting the sync comes to. Due says that it is started because
// [MailAsk.Due] said so, perhaps a moment ago, and not because somebody wants it.
func (s MailAsk) Start(due bool) SyncStart {
	return start(s.Job, s.idle(), due && s.Cursor.AskedAt.IsZero())
}

// Start is [MailAsk.Start] for calendars.
func (s CalendarAsk) Start(due bool) SyncStart {
	asked := !s.List.AskedAt.IsZero()
	return start(s.Job, asked && s.onlyWhole(), due && !asked)
}

func start(j *Job, wakes, unasked bool) SyncStart {
	switch {
	case j == nil:
		return StartFirst
	case j.State == Paused, unasked && j.State.Rests():
		return StartNothing
	case wakes:
		return StartAtOnce
	case j.State.Live():
		return StartLater
	}
	return StartOver
}

// Ask asks for a sync on behalf of a schedule or of a backfill that completed. It
// reports false, and asks for nothing, if the sync rests, or if it would have
// nothing to do.
func (s *MailAsk) Ask(now time.Time) bool {
	if s.Job.resting() || s.Cursor.standsStill(now) {
		return false
	}
	s.Cursor = s.Cursor.Ask(now)
	return true
}

// AskWhole asks for a sync that reads the whole mailbox. It reports false, and asks
// for nothing, if the sync rests.
func (s *MailAsk) AskWhole(now time.Time) bool {
	if s.Job.resting() {
		return false
	}
	s.Cursor = s.Cursor.AskWhole().Ask(now)
	return true
}

// Ask asks for a sync, which reads everything if all is set and else only changes. It
// reports false, and asks for nothing, if the sync rests.
func (s *CalendarAsk) Ask(now time.Time, all bool) bool {
	if s.Job.resting() {
		return false
	}
	s.List.Ask(now, all)
	return true
}

// Push asks for a sync because Gmail reported a change with a history id.
func (s *MailAsk) Push(historyID uint64, now time.Time) PushOutcome {
	switch {
	case historyID <= s.Cursor.HistoryID:
		return PushKnown
	case s.Job.resting():
		return PushResting
	}
	s.Again(now)
	return PushAsked
}

// Again asks for a sync that follows one under way: that reads the history again in
// its next slice or, if it has none, is followed by another.
func (s *MailAsk) Again(now time.Time) {
	if s.Job != nil && s.Job.State.Live() {
		s.Job.Checkpoint.Listed = false
	}
	s.Cursor = s.Cursor.Ask(now)
}

// resting reports whether a sync rests, or will when its owner finds the request.
func (j *Job) resting() bool { return j != nil && (j.State.Rests() || j.Wanted.Rests()) }

// AsksSync reports whether the job has ended so that a sync should follow, which
// reads what changed meanwhile.
func (j *Job) AsksSync() bool {
	return j.Kind == MailBackfill && (j.State == Completed || j.State == CompletedWithFailures)
}

// ForgetsAsk reports whether what was asked of the job before is forgotten, since it
// would begin again at once. Later asks count.
func (j *Job) ForgetsAsk() bool { return j.State == Cancelled || j.State == Blocked }

// Ask asks for a sync.
func (c Cursor) Ask(now time.Time) Cursor {
	c.AskedAt = firstOf(c.AskedAt, now)
	return c
}

// BeginSync begins a sync, which answers what was asked for.
func (c Cursor) BeginSync(now time.Time) Cursor {
	c.AskedAt, c.BegunAt = time.Time{}, now
	return c
}

// Forget forgets what was asked for.
func (c Cursor) Forget() Cursor {
	c.AskedAt = time.Time{}
	return c
}

// standsStill reports whether a sync has nothing to do: the history is too old to be
// read, and the mailbox was read as a whole less than [ReconcileEvery] ago. A history
// that runs backwards is read all the same, as that may have been one odd answer.
func (c Cursor) standsStill(now time.Time) bool {
	return c.Reconcile && c.ReconcileReason != HistoryBackwards && !c.Snapshot.Gap && !c.Snapshot.Asked &&
		c.ReconciledAt.After(now.Add(-ReconcileEvery))
}

// Ask asks for a sync, which reads everything if all is set by any request.
func (l *CalendarList) Ask(now time.Time, all bool) {
	l.AskedAt, l.AskedAll = firstOf(l.AskedAt, now), l.AskedAll || all
}

// Forget forgets what was asked for, and what would resume by itself.
func (l *CalendarList) Forget() { l.AskedAt, l.AskedAll, l.ResumeAt = time.Time{}, false, time.Time{} }

func firstOf(asked, now time.Time) time.Time {
	if asked.IsZero() {
		return now
	}
	return asked
}
