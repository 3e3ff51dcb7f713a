package meter

import (
	"cmp"
	"maps"
	"slices"
	"sync"

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

// CalendarCounter counts by calendar. The zero value is ready.
type CalendarCounter struct {
	mu   sync.Mutex
	byID map[[2]string]*CalendarCalls
}

// Note counts a call.
func (c *CalendarCounter) Note(of Call, refused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := [2]string{of.Account, of.Calendar}
	if c.byID == nil {
		c.byID = map[[2]string]*CalendarCalls{}
	}
	if c.byID[key] == nil {
		c.byID[key] = &CalendarCalls{Account: of.Account, Calendar: of.Calendar, CallsByMethod: map[string]int64{}}
	}
	n := c.byID[key]
	n.Calls++
	n.CallsByMethod[of.Method]++
	if refused {
		n.Refused++
	}
}

// All returns the counts, sorted by account and calendar.
func (c *CalendarCounter) All() []CalendarCalls {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]CalendarCalls, 0, len(c.byID))
	for _, n := range c.byID {
		copied := *n
		copied.CallsByMethod = maps.Clone(n.CallsByMethod)
		all = append(all, copied)
	}
	slices.SortFunc(all, func(a, b CalendarCalls) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Calendar, b.Calendar))
	})
	return all
}
