package calendar

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Put stores an event as it is given, JSON object and all, and gives it out so: in
// whatever zone, with whatever end and date of change. It replaces the event of its
// id, a cancelled one too. Nothing but the id is looked at.
func (c *Calendar) Put(raw json.RawMessage) (Event, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return Event{}, fmt.Errorf("put an event into %s: %w", c.id, err)
	}
	e := Event{raw: raw}
	// Field by field: one of another type than usual costs the fake no more than itself.
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if one, err := json.Marshal(map[string]json.RawMessage{name: fields[name]}); err == nil {
			_ = json.Unmarshal(one, &e)
		}
	}
	if e.ID == "" {
		return Event{}, fmt.Errorf("put an event into %s: it has no id", c.id)
	}
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	return c.put(e).Event, nil
}

// MarshalJSON implements [json.Marshaler]: an event that was put as it is comes so.
func (e Event) MarshalJSON() ([]byte, error) {
	if e.raw != nil {
		return e.raw, nil
	}
	type plain Event
	return json.Marshal(plain(e))
}

// SetZone changes the zone of the calendar. A name that IANA does not have, as
// clients have set some, goes with the clocks of UTC.
func (c *Calendar) SetZone(name string) {
	zone, err := time.LoadLocation(name)
	if err != nil {
		zone = time.FixedZone(name, 0)
	}
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	c.zone = zone
	c.relist()
}
