package quota

import (
	"context"
	"fmt"
	"time"
)

// LimitInFlight is the limit of the calls that a Google user has in flight.
const LimitInFlight = "user-in-flight"

// slotKeys names what the scripts keep of a user's calls in flight: the slots, and what
// was learned of them. They are no part of the windows' shape: processes that count in
// other windows share them. The names are older than our words.
func (p *plan) slotKeys(user string) []string {
	user = lower(user)
	return []string{p.base + "places:" + user, p.base + "flight:" + user}
}

// hour is the length of an hour of quota time, in us.
func (l *Ledger) hour() int64 { return time.Hour.Microseconds() / int64(l.scale) }

// FlightState is what is known of the calls that a Google user has in flight, and
// of its bytes.
type FlightState struct {
	InFlight int64 `json:"in_flight"` // now, over all processes
	// Learned is how many Google allows as far as refusals tell; 0: none was refused
	// lately. The background may use one less.
	Learned int64 `json:"learned,omitempty"`
	// CalmUntil is when a call may try one more than Learned; zero if nothing was
	// learned.
	CalmUntil time.Time `json:"calm_until,omitzero"`
	// Bytes of answers in the last day, as the calls' bodies delivered them: after
	// decompression, so Google may count fewer.
	Bytes int64 `json:"bytes"`
}

// InFlight reports what is known of a user's calls in flight, and changes nothing.
func (l *Ledger) InFlight(ctx context.Context, project, user, api string) (FlightState, error) {
	p, err := l.plan(Caller{Project: project, User: user, Lane: Interactive}, api)
	if err == nil {
		err = checkUser(user)
	}
	if err != nil {
		return FlightState{}, err
	}
	reply, err := l.eval(ctx, lookScript, p.slotKeys(user), l.hour(), l.testClock())
	switch {
	case err != nil:
		err = unavailable(err)
	case len(reply) != 4:
		err = fmt.Errorf("%w: an answer of %d numbers", ErrUnavailable, len(reply))
	}
	if err != nil {
		return FlightState{}, fmt.Errorf("look at calls in flight: %w", err)
	}
	s := FlightState{InFlight: reply[0], Learned: reply[1], Bytes: reply[3]}
	if reply[2] > 0 {
		s.CalmUntil = time.UnixMicro(reply[2])
	}
	return s, nil
}

// release gives a slot back, and reports how many bytes the call brought. If Google
// refused it because too many calls were in flight, refused is how many of Google's
// calls it was, else 0.
func (l *Ledger) release(ctx context.Context, s *slot, lane Lane, bytes, refused int64) error {
	l.slots.remove(s)
	defer l.slots.wake(s.user)
	state := s.user.state
	if err := state.breaker.broken(); err != nil {
		return err // while Redis does not answer, nobody is held up here
	}
	p := state.rules.Load().plan(s.user.user, lane)
	keys, args := p.slotKeys(s.user.user), []any{s.name, bytes, l.hour()}
	if refused > 0 || l.now != nil {
		keys = append(keys, p.keys(s.user.user)[1])
		args = append(args, refused, s.at.UnixMicro(), s.inFlight, l.testClock())
	}
	lowered, err := l.eval(ctx, releaseScript, keys, args...)
	if err != nil {
		return fmt.Errorf("release an in-flight slot: %w", unavailable(err))
	}
	l.metrics.bytes.WithLabelValues(string(lane)).Add(float64(bytes))
	if len(lowered) == 1 && lowered[0] == 1 {
		l.metrics.lowered.WithLabelValues(state.list.API).Inc()
	}
	return nil
}
