package calendar

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// firstDay is the earliest day of an event that is made up.
var firstDay = time.Date(2025, time.January, 6, 8, 0, 0, 0, time.UTC)

// summaries are those of events that are made up.
var summaries = []string{
	"Weekly review", "Lunch", "Planning", "Interview", "Release", "Réunion d'équipe", "Besprechung mit Zürich", "プロジェクトの進捗", "Retrospective", "Training",
}

// generate adds n made-up events such as a calendar holds: single ones, days,
// series with and without an end, and exceptions to them, which count. The same
// seed gives the same events.
func (c *Calendar) generate(seed uint64, n int) error {
	r := rand.New(rand.NewPCG(seed, 0x63616c))
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo"}
	for i := 0; i < n; i++ {
		day := firstDay.AddDate(0, 0, r.IntN(700))
		e := Event{Summary: fmt.Sprintf("%s %d", summaries[r.IntN(len(summaries))], i)}
		kind := r.IntN(10)
		if kind == 0 {
			e.Start = &EventTime{Date: day.Format(dayLayout)}
			e.End = &EventTime{Date: day.AddDate(0, 0, 1+r.IntN(3)).Format(dayLayout)}
		} else {
			zone := zones[r.IntN(len(zones))]
			begin := day.Truncate(24 * time.Hour).Add(time.Duration(8+r.IntN(10)) * time.Hour)
			e.Start = &EventTime{DateTime: begin.Format(floatingLayout), TimeZone: zone}
			e.End = &EventTime{DateTime: begin.Add(time.Duration(1+r.IntN(4)) * 30 * time.Minute).Format(floatingLayout), TimeZone: zone}
		}
		switch r.IntN(8) {
		case 0:
			e.Recurrence = []string{"RRULE:FREQ=WEEKLY"}
		case 1:
			e.Recurrence = []string{fmt.Sprintf("RRULE:FREQ=DAILY;COUNT=%d", 2+r.IntN(20))}
		}
		e.Created = day.Add(-7 * 24 * time.Hour).Format(stampLayout)
		if r.IntN(3) == 0 {
			e.Attendees = []EventAttendee{{Email: "colleague@example.com", ResponseStatus: "accepted"}}
		}
		stored, err := c.add(e)
		if err != nil {
			return err
		}
		if stored.master() && r.IntN(3) == 0 && i+1 < n {
			i++
			if err := c.except(stored, r.IntN(2) == 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// except moves the second occurrence of a series, or lets it not take place.
func (c *Calendar) except(series Event, cancel bool) error {
	skipped := false
	for o := range c.instances(&series) {
		if !skipped {
			skipped = true
			continue
		}
		if cancel {
			return c.cancel(o.ID)
		}
		_, err := c.update(o.ID, func(e *Event) { e.Summary += ", changed" })
		return err
	}
	return nil
}
