// Package agenda reads stored events: when they take place, occurrence by
// occurrence, and as an iCalendar file (RFC 5545) for other programs. It knows
// neither the store nor Google's service, only events as Google gives them.
//
// A series repeats by the clock of its own zone, as RFC 5545 has it: its rule is
// worked out on wall clocks, and each result becomes a moment afterwards. A time
// that the clocks skip is read with the offset before the gap, and one that they
// show twice is the first.
//
// An exception stands for the occurrence that would have begun at its original
// start, whether or not the rule still has one there. A cancelled one takes that
// occurrence away.
package agenda
