package gmail

import (
	"fmt"
	"time"
)

// Profile are how a mailbox treats those who list it. The zero value is Gmail as
// it documents itself.
type Profile struct {
	// PageTokenLifeMS is how long a page token is taken, in real time; for ever if
	// zero. PageTokenUses is how often; any number of times if zero.
	PageTokenLifeMS int `json:"page_token_life_ms,omitempty"`
	PageTokenUses   int `json:"page_token_uses,omitempty"`
	// Zone is where the dates of a query begin, a name such as Europe/Berlin; PST
	// if empty, whatever the season, as Google documents it.
	Zone string `json:"zone,omitempty"`
	// LooseSeconds takes the bounds of a query that are given in seconds for their
	// dates: "after" reaches back to the midnight before, and "before" leaves out
	// what is of the same day. Google documents that seconds are exact.
	LooseSeconds bool `json:"loose_seconds,omitempty"`
}

// pst is the zone of dates in a query where no other is set.
var pst = time.FixedZone("PST", -8*60*60)

func (h Profile) location() (*time.Location, error) {
	if h.Zone == "" {
		return pst, nil
	}
	return time.LoadLocation(h.Zone)
}

// SetProfile changes how the mailbox answers from now on. Page tokens that are out
// already have no life to measure and are refused where one is set.
func (m *Mailbox) SetProfile(h Profile) error {
	if h.PageTokenLifeMS < 0 || h.PageTokenUses < 0 {
		return fmt.Errorf("set habits of %s: numbers may not be negative", m.email)
	}
	if _, err := h.location(); err != nil {
		return fmt.Errorf("set habits of %s: %w", m.email, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.profile = h
	m.tokens.Limit(time.Duration(h.PageTokenLifeMS)*time.Millisecond, h.PageTokenUses)
	return nil
}
