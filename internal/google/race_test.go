//go:build race

package google

// race is whether the race detector watches.
const race = true
