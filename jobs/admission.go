package jobs

import "time"

// Admission says whether a backfill is one of those that are worked on. If there are
// many backfills, the scheduler admits only some of them at a time, so that accounts
// and tenants get their shares. Jobs of other kinds are always admitted.
type Admission string

// The admissions of a job.
const (
	Admitted    Admission = ""       // a task carries the job, or a worker owns it
	Yielding    Admission = "yields" // admitted until the slice ends: it is another job's turn
	NotAdmitted Admission = "wanted" // waits for admission, and no task carries the job
)

// FirstAdmission is the admission of a job that starts.
func FirstAdmission(k Kind) Admission {
	if k == MailBackfill {
		return NotAdmitted
	}
	return Admitted
}

// A Candidate is a live backfill with what decides about its admission.
type Candidate struct {
	Job       string
	Account   string
	Project   string
	Tenant    string
	Class     string
	Admission Admission
	WaitUntil time.Time // zero: the job waits for nothing but admission
	Units     int64     // spent by the job so far
}
