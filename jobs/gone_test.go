package jobs_test

import (
	"testing"
	"time"

	"headroom/jobs"
)

func TestAMessageOfTheHistoryIsLookedForAFewTimes(t *testing.T) {
	for _, kind := range []jobs.Kind{jobs.MailBackfill, jobs.CalendarSync} {
		if wait, again := jobs.GoneAgain(kind, 0); again {
			t.Errorf("a %s asks again after %s, want it to take the answer", kind, wait)
		}
	}
	var total, last time.Duration
	looks := 1
	for {
		wait, again := jobs.GoneAgain(jobs.MailSync, looks-1)
		if !again {
			break
		}
		if wait <= last || looks > 20 {
			t.Fatalf("look %d comes after %s, the one before came after %s", looks+1, wait, last)
		}
		total, last, looks = total+wait, wait, looks+1
	}
	if looks < 4 || total < time.Minute || total > 5*time.Minute {
		t.Errorf("%d looks within %s, want a few within minutes", looks, total)
	}
}
