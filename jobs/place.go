package jobs

import "time"

// Place says whether a backfill is one of those at work. There are fewer places
// than backfills when there are many: the scheduler gives them out so that
// accounts and tenants come by their shares. Other kinds of job always have one.
type Place string

// The places of a job.
const (
	PlaceHeld   Place = ""       // a task carries the job, or a worker owns it
	PlaceYields Place = "yields" // held to the end of the slice: somebody else's turn is next
	PlaceWanted Place = "wanted" // no task carries the job until it is given a place
)

// FirstPlace is the place of a job that starts.
func FirstPlace(k Kind) Place {
	if k == MailBackfill {
		return PlaceWanted
	}
	return PlaceHeld
}

// A Contender is a live backfill with what decides about its place.
type Contender struct {
	Job       string
	Account   string
	Project   string
	Tenant    string
	Class     string
	Place     Place
	WaitUntil time.Time // zero: the job waits for nothing but a place
	Units     int64     // spent by the job so far
}
