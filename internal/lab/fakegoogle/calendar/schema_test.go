package calendar

import (
	"testing"

	"headroom/internal/lab/fakegoogle/discovery"
	"headroom/internal/lab/fakegoogle/meter"
)

// Every answer must have only fields that Google's own schema has, with types
// that its clients can read.
func TestCalendarsAnswersFitGooglesSchema(t *testing.T) {
	d := discovery.Read(t, "calendar", "v3")
	for name, answer := range map[string]any{
		"CalendarList": listAnswer[calendarEntry]{}, "CalendarListEntry": calendarEntry{}, "Calendar": calendarResource{},
		"Events": eventList{}, "Event": Event{}, "Channel": channelResource{},
		"FreeBusyRequest": freeBusyRequest{}, "FreeBusyResponse": freeBusyAnswer{}, "FreeBusyCalendar": freeBusyCalendar{},
		"Colors": colors{}, "ColorDefinition": color{}, "Settings": listAnswer[setting]{}, "Acl": listAnswer[aclRule]{},
	} {
		for _, problem := range d.Misfits(name, answer) {
			t.Error(problem)
		}
	}
}

// What is served must be served where Google's own clients look for it, and have a
// price of its own.
func TestCalendarsMethodsAreServedWhereGoogleServesThem(t *testing.T) {
	served := map[string]string{} // verb and path, with a * for each id, by method
	for pattern, method := range routes {
		served[method] = pattern
	}
	for _, problem := range discovery.Read(t, "calendar", "v3").Misserved(served) {
		t.Error(problem)
	}
	prices, err := meter.CalendarPriceList()
	if err != nil {
		t.Fatal(err)
	}
	for method := range served {
		if !prices.Knows(method) {
			t.Errorf("%s has no price", method)
		}
	}
}
