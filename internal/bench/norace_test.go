//go:build !race

package bench

// race is whether the race detector watches.
const race = false
