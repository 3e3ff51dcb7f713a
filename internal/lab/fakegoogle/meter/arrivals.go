package meter

import (
	"cmp"
	"iter"
	"time"

	"headroom/internal/lab/fakegoogle/wire"
)

// An Arrival is one call as it reached the meter.
type Arrival struct {
	At      time.Time `json:"at"`
	Project string    `json:"project"`
	User    string    `json:"user"`
	Method  string    `json:"method"`
	Format  string    `json:"format,omitempty"`
	ID      string    `json:"id,omitempty"` // of the message, thread or event that was asked for
	// Account and Calendar are what a call of Calendar asked about; its User is who
	// was charged.
	Account  string `json:"account,omitempty"`
	Calendar string `json:"calendar,omitempty"`
	Units    int64  `json:"units"`
	// InFlight is how many calls of the mailbox were between meter and answer, this
	// one included even if it was refused.
	InFlight int `json:"in_flight"`
	// OverLimit reports that the user's window that ended here, or the project's, held
	// more than the limit in force at that moment, refused calls included.
	OverLimit bool    `json:"over_limit,omitempty"`
	Refused   Refusal `json:"refused,omitempty"`
	// Status is that of the answer; 0 while there is none, and for ever when a fault
	// cut the connection instead.
	Status int `json:"status,omitempty"`
}

// A Filter chooses arrivals. A zero field chooses all.
type Filter struct {
	Project string
	User    string // an address in any case
	Method  string // an id of the discovery document
	Since   time.Time
	// Calendar chooses among the calls of Calendar, whose user is then the account
	// that is asked about, and not among Gmail's.
	Calendar bool
}

// Select yields the arrivals that a filter chooses, of those before the iteration
// began, oldest first.
func (m *Meter) Select(f Filter) iter.Seq[Arrival] {
	f.User = wire.AddressKey(f.User)
	fits := func(want, have string) bool { return want == "" || want == have }
	return func(yield func(Arrival) bool) {
		for a := range m.arrivals() {
			if fits(f.Project, a.Project) && fits(f.User, cmp.Or(a.Account, a.User)) && fits(f.Method, a.Method) &&
				!a.At.Before(f.Since) && !yield(a) {
				return
			}
		}
	}
}

// arrivals copies the log piece by piece, so that calls do not wait for long.
func (m *Meter) arrivals() iter.Seq[Arrival] {
	return func(yield func(Arrival) bool) {
		m.mu.Lock()
		next, end := m.log.dropped, m.log.next
		m.mu.Unlock()
		var piece [logPiece]Arrival
		for next < end {
			m.mu.Lock()
			next = max(next, m.log.dropped)
			n := 0
			for ; n < len(piece) && next < end; n++ {
				piece[n] = m.arrival(*m.log.at(next))
				next++
			}
			m.mu.Unlock()
			for _, a := range piece[:n] {
				if !yield(a) {
					return
				}
			}
		}
	}
}

func (m *Meter) arrival(e logEntry) Arrival {
	names := m.log.byName
	return Arrival{
		At: m.start.Add(e.at), Project: names[e.project], User: names[e.user],
		Method: names[e.method], Format: names[e.format], ID: e.id, Units: e.units,
		Account: names[e.account], Calendar: names[e.calendar],
		InFlight: int(e.inFlight), OverLimit: e.over, Refused: e.refused, Status: int(e.status),
	}
}
