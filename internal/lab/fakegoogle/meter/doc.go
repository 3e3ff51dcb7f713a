// Package meter counts calls as Google does. A [Meter] charges each call by a price
// list, refuses those that exceed a limit by one of the algorithms that Google may
// use, and keeps an exact log of all arrivals, from which alone [Report] and
// [Activity] are made, so that they say the same whichever algorithm refuses.
package meter
