package fakegoogle

import (
	"fmt"
	"net/url"
	"slices"
	"time"
)

// An Activity is what some arrivals amount to. GET /_fake/activity returns it as
// JSON.
type Activity struct {
	Calls   int64 `json:"calls"`
	Units   int64 `json:"units"`
	Refused int64 `json:"refused"`
	// Refusals counts those the meter refused by reason, and Statuses all answers by
	// status. A fault's refusal is in Statuses only.
	Refusals     map[Refusal]int64 `json:"refusals"`
	Statuses     map[int]int64     `json:"statuses"`
	OverLimit    int64             `json:"over_limit"` // see [Arrival]
	MostInFlight int               `json:"most_in_flight"`
	FirstCall    time.Time         `json:"first_call,omitzero"`
	LastCall     time.Time         `json:"last_call,omitzero"`
}

// Activity sums up the arrivals that a filter chooses, for instance those of one
// user since a moment.
func (s *Server) Activity(f Filter) Activity {
	sum := Activity{Refusals: map[Refusal]int64{}, Statuses: map[int]int64{}}
	for a := range s.Select(f) {
		if sum.Calls == 0 {
			sum.FirstCall = a.At.UTC()
		}
		sum.LastCall = a.At.UTC()
		sum.Calls++
		sum.Units += a.Units
		sum.MostInFlight = max(sum.MostInFlight, a.InFlight)
		if a.Refused != "" {
			sum.Refused++
			sum.Refusals[a.Refused]++
		}
		if a.Status != 0 {
			sum.Statuses[a.Status]++
		}
		if a.OverLimit {
			sum.OverLimit++
		}
	}
	return sum
}

// filterOf reads the filter of a control's query.
func filterOf(q url.Values) (Filter, error) {
	for key := range q {
		if !slices.Contains([]string{"project", "user", "method", "since", "api"}, key) {
			return Filter{}, fmt.Errorf("unknown parameter %q: choose by api, project, user, method and since", key)
		}
	}
	f := Filter{Project: q.Get("project"), User: q.Get("user"), Method: q.Get("method")}
	calendar, err := isCalendarAPI(q)
	if err != nil {
		return Filter{}, err
	}
	f.Calendar = calendar
	since := q.Get("since")
	if since == "" {
		return f, nil
	}
	if ago, err := time.ParseDuration(since); err == nil {
		f.Since = time.Now().Add(-ago)
		return f, nil
	}
	if f.Since, err = time.Parse(time.RFC3339Nano, since); err != nil {
		return Filter{}, fmt.Errorf("since %q is neither a moment like 2026-11-29T20:00:00Z nor a duration like 30s", since)
	}
	return f, nil
}

// isCalendarAPI reads the parameter api of a control: calendar, or gmail, which is
// meant without it.
func isCalendarAPI(q url.Values) (bool, error) {
	switch api := q.Get("api"); api {
	case "", "gmail":
		return false, nil
	case "calendar":
		return true, nil
	default:
		return false, fmt.Errorf("api %q is neither gmail nor calendar", api)
	}
}
