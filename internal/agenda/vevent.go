package agenda

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-ical"
	"google.golang.org/api/calendar/v3"
)

// event writes an event without its recurrence.
func (f *icsFile) event(e *event, uid string) *ical.Component {
	c := ical.NewComponent(ical.CompEvent)
	f.events = append(f.events, c)
	text := func(name, value string) {
		if value = clean(value); value != "" {
			c.Props.SetText(name, value)
		}
	}
	text(ical.PropUID, uid)
	f.time(c, ical.PropDateTimeStart, e.start)
	if e.end.in(time.UTC).After(e.start.in(time.UTC)) && !e.EndTimeUnspecified {
		f.time(c, ical.PropDateTimeEnd, e.end)
	}
	c.Props.SetDateTime(ical.PropDateTimeStamp, stamp(e.stored, e.Created))
	for name, at := range map[string]string{ical.PropCreated: e.Created, ical.PropLastModified: e.Updated} {
		if t, err := time.Parse(time.RFC3339, at); err == nil {
			c.Props.SetDateTime(name, inWorld(t))
		}
	}
	text(ical.PropSummary, e.Summary)
	text(ical.PropDescription, e.Description)
	text(ical.PropLocation, e.Location)
	if slices.Contains([]string{"confirmed", "tentative", "cancelled"}, e.Status) {
		text(ical.PropStatus, strings.ToUpper(e.Status))
	}
	if e.Sequence > 0 {
		c.Props.Set(&ical.Prop{Name: ical.PropSequence, Value: fmt.Sprint(e.Sequence)})
	}
	if e.Transparency == "transparent" {
		text(ical.PropTransparency, "TRANSPARENT")
	}
	if class, ok := map[string]string{"public": "PUBLIC", "private": "PRIVATE", "confidential": "CONFIDENTIAL"}[e.Visibility]; ok {
		text(ical.PropClass, class)
	}
	people(c, e)
	alarms(c, e)
	return c
}

// people writes the organizer and the attendees of an event.
func people(c *ical.Component, e *event) {
	if o := e.Organizer; o != nil && o.Email != "" && len(e.Attendees) > 0 {
		c.Props.Set(person(ical.PropOrganizer, o.Email, o.DisplayName))
	}
	for _, a := range e.Attendees {
		if a == nil || a.Email == "" {
			continue
		}
		p := person(ical.PropAttendee, a.Email, a.DisplayName)
		if status, ok := answers[a.ResponseStatus]; ok {
			p.Params.Set(ical.ParamParticipationStatus, status)
		}
		if a.Optional {
			p.Params.Set(ical.ParamRole, "OPT-PARTICIPANT")
		}
		if a.Resource {
			p.Params.Set(ical.ParamCalendarUserType, "RESOURCE")
		}
		c.Props.Add(p)
	}
}

var answers = map[string]string{
	"needsAction": "NEEDS-ACTION", "declined": "DECLINED", "tentative": "TENTATIVE", "accepted": "ACCEPTED",
}

func person(name, email, called string) *ical.Prop {
	p := ical.NewProp(name)
	p.Value = "mailto:" + oneLine(email)
	if called = strings.ReplaceAll(oneLine(called), `"`, "'"); called != "" {
		p.Params.Set(ical.ParamCommonName, called)
	}
	return p
}

func oneLine(text string) string { return strings.ReplaceAll(clean(text), "\n", " ") }

// alarms writes the event's own reminders.
func alarms(c *ical.Component, e *event) {
	if e.Reminders == nil || e.Reminders.UseDefault {
		return
	}
	for _, r := range e.Reminders.Overrides {
		if r == nil {
			continue
		}
		c.Children = append(c.Children, alarm(r, e.Summary))
	}
}

func alarm(r *calendar.EventReminder, summary string) *ical.Component {
	a := ical.NewComponent(ical.CompAlarm)
	a.Props.SetText(ical.PropAction, "DISPLAY")
	a.Props.SetText(ical.PropDescription, clean(summary))
	a.Props.Set(&ical.Prop{Name: ical.PropTrigger, Value: fmt.Sprintf("-PT%dM", max(0, r.Minutes))})
	return a
}
