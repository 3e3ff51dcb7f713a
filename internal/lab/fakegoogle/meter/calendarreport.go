package meter

import (
	"cmp"
	"maps"
	"slices"

	"headroom/internal/lab/fakegoogle/wire"
)

// A CalendarReport is the account of Calendar's own meter. Its users are those
// who are charged: a quotaUser where one was sent, and otherwise a service account
// or an address.
type CalendarReport struct {
	Prices   string          `json:"prices"`
	Users    []UserReport    `json:"users"`
	Projects []ProjectReport `json:"projects"`
	// Calendars counts calls by account and calendar, sorted by both; those of the
	// list of calendars and of channels.stop have no calendar.
	Calendars []CalendarCalls `json:"calendars"`
}

// CalendarCalls counts the calls that concern one calendar, refused ones included.
type CalendarCalls struct {
	Account       string           `json:"account"`
	Calendar      string           `json:"calendar,omitempty"`
	Calls         int64            `json:"calls"`
	Refused       int64            `json:"refused"`
	CallsByMethod map[string]int64 `json:"calls_by_method"`
}

// User returns the report of a user, of the first project by name in which it
// called; the zero UserReport where it did not call.
func (r CalendarReport) User(name string) UserReport {
	return Report{Users: r.Users}.User(name)
}

// Calendar returns the calls that concern a calendar of an account.
func (r CalendarReport) Calendar(account, id string) CalendarCalls {
	for _, c := range r.Calendars {
		if c.Account == wire.AddressKey(account) && c.Calendar == id {
			return c
		}
	}
	return CalendarCalls{}
}

// Refused returns how many calls the meter refused.
func (r CalendarReport) Refused() int64 { return Report{Projects: r.Projects}.Refused() }

// OverLimit is [Report.OverLimit] for Calendar.
func (r CalendarReport) OverLimit() int {
	return Report{Users: r.Users, Projects: r.Projects}.OverLimit()
}

// calendarCounts counts calls by account and calendar. The meter's lock guards it.
type calendarCounts map[[2]string]*CalendarCalls

func (c calendarCounts) note(of Call, refused bool) {
	key := [2]string{of.Account, of.Calendar}
	n := c[key]
	if n == nil {
		n = &CalendarCalls{Account: of.Account, Calendar: of.Calendar, CallsByMethod: map[string]int64{}}
		c[key] = n
	}
	n.Calls++
	n.CallsByMethod[of.Method]++
	if refused {
		n.Refused++
	}
}

// CalendarReport returns the account of a meter of Calendar so far.
func (m *Meter) CalendarReport() CalendarReport {
	r := CalendarReport{Prices: CalendarPrices, Calendars: []CalendarCalls{}}
	r.Users, r.Projects = m.Reports()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.calendars {
		copied := *n
		copied.CallsByMethod = maps.Clone(n.CallsByMethod)
		r.Calendars = append(r.Calendars, copied)
	}
	slices.SortFunc(r.Calendars, func(a, b CalendarCalls) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Calendar, b.Calendar))
	})
	return r
}
