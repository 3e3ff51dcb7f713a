// Package agenda reads stored events: when they take place, occurrence by
// occurrence, and as an iCalendar file (RFC 5545) for other programs. It knows
// neither the store nor Google's service, only events as Google gives them.
//
// A series repeats by the clock of its own zone (RFC 5545): its rule is expanded on
// the wall clock, and each result then becomes a moment. A time that the clocks skip
// is read with the offset before the gap, and a time that they show twice is the
// first of the two.
//
// An exception replaces the occurrence that would have begun at its original start,
// whether or not the rule still has one there. A cancelled exception removes that
// occurrence.
package agenda
