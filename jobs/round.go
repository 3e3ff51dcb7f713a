package jobs

import "time"

// A round is one sync of an account's calendars: their list is read, and then each
// calendar on it. The methods of this file move a [CalendarList] and its calendars
// through a round, as those of [Stream] move each through its pages.

// notListed is why a calendar is [CalendarRemoved].
const notListed = "no longer on the account's list of calendars"

// NewCalendarList is the list of an account of which nothing was read.
func NewCalendarList(account string) CalendarList {
	return CalendarList{Account: account, Listed: true, Stream: NewStream()}
}

// Answers reports whether the slice that begins is to begin the round that was asked
// for. ChangesLeft says that the last one has yet to read what changed in a calendar
// that may be read now: that goes first.
func (l *CalendarList) Answers(changesLeft bool) bool {
	return !l.AskedAt.IsZero() && l.Listed && !changesLeft
}

// BeginRound begins the round that was asked for; if none was, the last goes on. All
// says that everything is to be read, so that each calendar needs
// [Stream.ReadAll], too.
func (l *CalendarList) BeginRound(now time.Time) (all bool) {
	l.ResumeAt = time.Time{}
	if l.AskedAt.IsZero() && l.Round > 0 {
		return false
	}
	if all = l.AskedAll; all {
		l.Stream.ReadAll()
	}
	l.AskedAt, l.AskedAll, l.BegunAt, l.Listed = time.Time{}, false, now, false
	l.Round++
	return all
}

// Left reports whether the round has yet to deal with a calendar.
func (l *CalendarList) Left(c Calendar) bool { return c.State != CalendarRemoved && c.Round < l.Round }

// EndRound ends the round. If it left calendars, or their list, alone for their
// troubles, the next begins when the first of them may be read again.
func (l *CalendarList) EndRound(calendars []Calendar, now time.Time) {
	var next []time.Time
	if !l.Listed {
		next = append(next, l.Stream.NextTry)
	}
	for _, c := range calendars {
		if l.Left(c) {
			next = append(next, c.Stream.NextTry)
		}
	}
	l.SyncedAt, l.ResumeAt = now, time.Time{}
	for i, t := range next {
		if i == 0 || t.Before(l.ResumeAt) {
			l.ResumeAt = t
		}
	}
}

// Advance moves the list behind a page of it. Complete says that it was
// the last of a pass; see [Stream.Advance].
func (l *CalendarList) Advance(page CalendarListPage, now time.Time) (complete bool, trouble string) {
	complete, trouble = l.Stream.Advance(len(page.Calendars), page.Next, page.SyncToken, now)
	l.Listed = l.Listed || complete
	return complete, trouble
}

// Apply makes c what an entry of the list says. A calendar that comes back after it
// was removed goes on where it was.
func (c *Calendar) Apply(e CalendarEntry) {
	if e.Deleted {
		c.Remove()
		return
	}
	c.Summary, c.TimeZone, c.AccessRole, c.Primary, c.JSON = e.Summary, e.TimeZone, e.AccessRole, e.Primary, e.JSON
	switch {
	case c.State != CalendarRemoved && c.State != "":
	case c.Stream.SyncedAt.IsZero():
		c.State, c.Reason = CalendarNew, ""
	default:
		c.State, c.Reason = CalendarSynced, ""
	}
}

// Remove says that the calendar is no longer on the account's list.
func (c *Calendar) Remove() { c.State, c.Reason = CalendarRemoved, notListed }

// Advance moves the calendar behind a page of its events. Complete says that it was
// the last of a pass, with which the round is done with the calendar; ok is false
// when the page leads nowhere, and the pass starts over.
func (c *Calendar) Advance(page EventPage, round int64, now time.Time) (complete, ok bool) {
	complete, trouble := c.Stream.Advance(len(page.Events), page.Next, page.SyncToken, now)
	if trouble != "" {
		c.State, c.Reason = CalendarFailing, trouble
		return false, false
	}
	if complete {
		c.State, c.Reason, c.Round = CalendarSynced, "", round
	}
	return complete, true
}

// Expire says that Google refused the calendar's sync token, or broke off a pass over
// the whole of it; see [Stream.Expire].
func (c *Calendar) Expire(reason string, now time.Time) {
	c.Stream.Expire(now)
	c.State, c.Reason = CalendarExpired, reason
}

// Restart says that a page token of the calendar's pass leads nowhere; see
// [Stream.Restart].
func (c *Calendar) Restart(reason string, now time.Time) {
	c.Stream.Restart(now)
	if !c.Stream.NextTry.IsZero() {
		c.State, c.Reason = CalendarFailing, reason
	}
}

// Mark says why the calendar cannot be read: state is one of missing, forbidden and
// failing. It is left alone for a while. A failing one is tried again by itself; with
// the others the round is done.
func (c *Calendar) Mark(state CalendarState, reason string, round int64, now time.Time) {
	c.Stream.Fail(now)
	c.State, c.Reason = state, reason
	if state != CalendarFailing {
		c.Round = round
	}
}
