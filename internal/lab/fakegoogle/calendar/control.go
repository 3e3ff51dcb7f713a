package calendar

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"headroom/internal/lab/fakegoogle/wire"
)

// A State is what one calendar holds.
type State struct {
	Info
	Access  string  `json:"access"`
	Primary bool    `json:"primary,omitempty"`
	Hidden  bool    `json:"hidden,omitempty"`
	Events  []Event `json:"events"` // as made; of cancelled ones the stubs
}

// An AccountState answers GET /_fake/calendar.
type AccountState struct {
	Account   string  `json:"account"`
	Calendars []State `json:"calendars"`
}

// A Change is the body of POST /_fake/calendar, alone or in a list.
type Change struct {
	Account  string `json:"account"`            // that of the first mailbox if empty
	Calendar string `json:"calendar,omitempty"` // an id; the primary one if empty
	Op       string `json:"op"`
	ID       string `json:"id,omitempty"` // of an event, a series or an occurrence
	// Start is where move moves to, and the original start of the occurrence that
	// split begins at or, with a series' id, that move and cancel mean.
	Start    *EventTime `json:"start,omitempty"`
	Original *EventTime `json:"original,omitempty"`
	// Event is what add adds and put puts, and what update and split change of what
	// is there.
	Event    json.RawMessage `json:"event,omitempty"`
	Access   string          `json:"access,omitempty"`    // for acl
	Always   bool            `json:"always,omitempty"`    // for expire-token: those of the future too
	Hidden   bool            `json:"hidden,omitempty"`    // for hide
	Summary  string          `json:"summary,omitempty"`   // for add-calendar
	TimeZone string          `json:"time_zone,omitempty"` // for add-calendar and zone
}

// A Changed answers POST /_fake/calendar: the events that were added,
// moved, updated or split off, in the order of the changes.
type Changed struct {
	Events []Event `json:"events"`
}

// Apply does a change that concerns one calendar.
func (c *Calendar) Apply(change Change) (*Event, error) {
	id := change.ID
	if change.Original != nil && change.Op != "split" {
		id = c.OccurrenceID(id, *change.Original)
	}
	result := func(e Event, err error) (*Event, error) {
		if err != nil {
			return nil, err
		}
		return &e, nil
	}
	needs := map[string]bool{"add": change.Event != nil, "put": change.Event != nil, "zone": change.TimeZone != "", "update": change.Event != nil, "move": change.Start != nil, "split": change.Original != nil}
	if has, asked := needs[change.Op]; asked && !has {
		return nil, fmt.Errorf("op %s lacks what it needs: add, put and update an event, move a start, split an original, zone a time_zone", change.Op)
	}
	if change.Op == "put" {
		return result(c.Put(change.Event))
	}
	var e Event // as far as it goes: add needs all of it, update and split a part
	if change.Event != nil {
		if err := wire.DecodeStrict(change.Event, &e); err != nil {
			return nil, err
		}
	}
	switch change.Op {
	case "add":
		if e.Start == nil || e.End == nil {
			return nil, errors.New("an event needs a start and an end")
		}
		return result(c.Add(e))
	case "move":
		return result(c.Move(id, *change.Start))
	case "update":
		return result(c.Update(id, patcher(change.Event)))
	case "split":
		return result(c.Split(id, *change.Original, patcher(change.Event)))
	case "cancel":
		return nil, c.Cancel(id)
	case "delete":
		return nil, c.Delete(id)
	case "delete-series":
		return nil, c.DeleteSeries(id)
	case "zone":
		c.SetZone(change.TimeZone)
	case "acl":
		return nil, c.SetAccess(change.Access)
	case "hide":
		c.Hide(change.Hidden)
	case "expire-token":
		c.ExpireTokens(change.Always)
	case "expire-page-tokens":
		c.ExpirePageTokens()
	case "forget-changes":
		c.ForgetChanges()
	default:
		return nil, fmt.Errorf("op %q is none of %s", change.Op, strings.Join(ops, ", "))
	}
	return nil, nil
}

var ops = []string{
	"add", "put", "move", "update", "split", "cancel", "delete", "delete-series", "acl", "hide",
	"expire-token", "expire-page-tokens", "expire-list-token", "forget-changes", "add-calendar", "zone",
}

// patcher merges JSON that was checked into an event.
func patcher(patch json.RawMessage) func(*Event) {
	return func(e *Event) {
		if len(patch) == 0 {
			return
		}
		if changed, err := merged(*e, patch); err == nil {
			*e = changed
		}
	}
}

// State returns what the calendar is and holds.
func (c *Calendar) State() State {
	events := c.Events()
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	return State{
		Info:   Info{ID: c.id, Summary: c.summary, TimeZone: c.zone.String()},
		Access: c.access, Primary: c.primary, Hidden: c.hidden, Events: events,
	}
}
