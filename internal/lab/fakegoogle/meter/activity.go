package meter

import "time"

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
func (m *Meter) Activity(f Filter) Activity {
	sum := Activity{Refusals: map[Refusal]int64{}, Statuses: map[int]int64{}}
	for a := range m.Select(f) {
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
