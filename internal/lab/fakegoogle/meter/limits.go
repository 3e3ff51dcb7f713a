package meter

// Limits are what the meter refuses by.
type Limits struct {
	User        int64 `json:"user,omitempty"`    // units per minute of a user in a project
	Project     int64 `json:"project,omitempty"` // units per minute of a project
	InFlight    int   `json:"in_flight,omitempty"`
	BytesPerDay int64 `json:"bytes_per_day,omitempty"`
}

// Limits returns the limits in force.
func (m *Meter) Limits() Limits {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Set.limits()
}

func (set *Settings) limits() Limits {
	return Limits{User: set.UserLimit, Project: set.ProjectLimit, InFlight: set.InFlightLimit, BytesPerDay: set.BytesPerDay}
}

// SetLimits changes limits from the next arrival on; those that are zero stay.
// What was spent before counts against the new limits too, and the exact log
// holds each arrival to the limit in force at its moment. It returns the limits
// then in force.
func (m *Meter) SetLimits(l Limits) Limits {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	if l.User != 0 {
		m.Set.UserLimit = l.User
		for _, a := range m.users {
			a.enforced.setLimit(now, l.User)
			a.exact.limit = l.User
		}
	}
	if l.Project != 0 {
		m.Set.ProjectLimit = l.Project
		for _, a := range m.projects {
			a.enforced.setLimit(now, l.Project)
			a.exact.limit = l.Project
		}
	}
	if l.InFlight != 0 {
		m.Set.InFlightLimit = l.InFlight
	}
	if l.BytesPerDay != 0 {
		m.Set.BytesPerDay = l.BytesPerDay
	}
	return m.Set.limits()
}
