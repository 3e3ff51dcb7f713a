package jobs

import "time"

// goneAgain are the waits before a message that a mailbox's history names is asked
// for again, although Google has answered that it is not there.
var goneAgain = []time.Duration{2 * time.Second, 8 * time.Second, 30 * time.Second, 90 * time.Second}

// GoneAgain says whether a message that Google does not find is asked for again,
// and after which wait, when it was asked for so many times before. To a live sync
// the mailbox's history has named the message, and Google's servers may learn of it
// some minutes later than the history does; a record of its deletion ends the
// waiting. To a backfill it has been deleted since it was listed.
func GoneAgain(kind Kind, before int) (wait time.Duration, again bool) {
	if kind != MailSync || before < 0 || before >= len(goneAgain) {
		return 0, false
	}
	return goneAgain[before], true
}
