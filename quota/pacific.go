package quota

import (
	"time"
	_ "time/tzdata" // the binary must know Pacific Time wherever it runs
)

var pacific = mustLocation("America/Los_Angeles")

func mustLocation(name string) *time.Location {
	l, err := time.LoadLocation(name)
	if err != nil {
		panic(err) // the zone is part of the binary
	}
	return l
}
