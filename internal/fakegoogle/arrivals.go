package fakegoogle

import (
	"iter"
	"time"
)

// An Arrival is one call as it reached the meter.
type Arrival struct {
	At      time.Time `json:"at"`
	Project string    `json:"project"`
	User    string    `json:"user"`
	Method  string    `json:"method"`
	Format  string    `json:"format,omitempty"`
	ID      string    `json:"id,omitempty"` // of the message, for messages.get
	Units   int64     `json:"units"`
	Refused Refusal   `json:"refused,omitempty"`
}

// arrivalLog keeps every arrival since the server's start. It is never cut: an
// entry takes some 60 bytes (names are interned), and a test server that ran a
// million calls can spare that.
type arrivalLog struct {
	entries []logEntry
	names   map[string]uint32
	byName  []string
}

type logEntry struct {
	at                            time.Duration
	units                         int64
	id                            string
	project, user, method, format uint32
	refused                       Refusal
}

func (l *arrivalLog) add(now time.Duration, units int64, c call, refused Refusal) {
	l.entries = append(l.entries, logEntry{
		at: now, units: units, id: c.id, refused: refused,
		project: l.intern(c.project), user: l.intern(c.user),
		method: l.intern(c.method), format: l.intern(c.format),
	})
}

func (l *arrivalLog) intern(name string) uint32 {
	if n, ok := l.names[name]; ok {
		return n
	}
	if l.names == nil {
		l.names = map[string]uint32{}
	}
	n := uint32(len(l.byName))
	l.names[name] = n
	l.byName = append(l.byName, name)
	return n
}

// Arrivals yields every call that reached the meter before the iteration began,
// oldest first. It is safe to use while the server serves.
func (s *Server) Arrivals() iter.Seq[Arrival] {
	return func(yield func(Arrival) bool) {
		m := s.meter
		m.mu.Lock()
		// Entries and names are only ever appended to, so these views stay valid.
		entries, names := m.log.entries, m.log.byName
		m.mu.Unlock()
		for _, e := range entries {
			if !yield(Arrival{
				At: m.start.Add(e.at), Project: names[e.project], User: names[e.user],
				Method: names[e.method], Format: names[e.format],
				ID: e.id, Units: e.units, Refused: e.refused,
			}) {
				return
			}
		}
	}
}
