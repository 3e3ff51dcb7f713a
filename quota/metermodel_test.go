package quota_test

import "time"

// A meterModel is one of the ways in which Google may count a user's minute, on a
// clock that the caller has.
type meterModel struct {
	kind  string // fixed, anchored, sliding or bucket
	limit int64

	start time.Time // of the fixed or anchored minute
	used  int64     // in it
	log   []arrival // of the sliding minute
	level float64   // of the bucket, which is as deep as the fake Google's
	at    time.Time
}

type arrival struct {
	at    time.Time
	units int64
}

// take reports whether a call is let in, and when the window ends if there is one
// that does.
func (m *meterModel) take(now time.Time, units int64) (ok bool, ends time.Time) {
	switch m.kind {
	case "fixed":
		if start := now.Truncate(time.Minute); start.After(m.start) {
			m.start, m.used = start, 0
		}
		if ok = m.used+units <= m.limit; ok {
			m.used += units
		}
		return ok, m.start.Add(time.Minute)
	case "anchored":
		if !now.Before(m.start.Add(time.Minute)) {
			m.start, m.used = now, 0
		}
		if ok = m.used+units <= m.limit; ok {
			m.used += units
		}
		return ok, m.start.Add(time.Minute)
	case "sliding":
		for len(m.log) > 0 && !m.log[0].at.After(now.Add(-time.Minute)) {
			m.log = m.log[1:]
		}
		sum := units
		for _, a := range m.log {
			sum += a.units
		}
		if ok = sum <= m.limit; ok {
			m.log = append(m.log, arrival{now, units})
		}
		return ok, time.Time{}
	}
	rate := float64(m.limit) / 60
	m.level = min(rate*11, m.level+now.Sub(m.at).Seconds()*rate)
	m.at = now
	if ok = m.level >= float64(units); ok {
		m.level -= float64(units)
	}
	return ok, time.Time{}
}
