package e2e_test

import (
	"database/sql"
	"testing"
	"time"

	"headroom/config"
	"headroom/internal/app"
	"headroom/jobs"
)

// TestAClockThatWasAheadOnce: what a store holds after its host's clock was two
// days ahead is what its moments are now, moved by two days. Schedules run, a
// mailbox is kept in step, and a backfill that waits goes on, as if it never was.
func TestAClockThatWasAheadOnce(t *testing.T) {
	t.Parallel()
	r := newSite(t, 20)
	r.cfg.Schedules = map[string]config.Schedule{"mail-sync": {Spec: "@every 2s"}}
	a := r.runBackfilled()
	ran := func() bool { return r.slots(a.Store(), jobs.ScheduleMail)[ann].Runs > 0 }
	r.until("the schedule runs", ran)
	raw, err := sql.Open("sqlite", r.cfg.Store.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	const ahead = int64(48 * time.Hour / time.Millisecond)
	for _, stmt := range []string{
		"UPDATE schedule_slots SET slot = slot + ?1, ran_at = ran_at + ?1, runs = 0",
		"UPDATE mailboxes SET begun_at = begun_at + ?1, synced_at = synced_at + ?1, reconciled_at = ?1 + 1000 * unixepoch()",
		"UPDATE jobs SET updated_at = updated_at + ?1",
		"UPDATE jobs SET state = 'waiting', live = TRUE, wait_until = updated_at + 500 WHERE kind = 'mail-backfill'",
	} {
		if _, err := raw.Exec(stmt, ahead); err != nil {
			t.Fatal(err)
		}
	}
	box := r.fake.Mailbox(ann)
	box.Delete(box.Messages()[3].ID)
	r.run(app.RoleScheduler) // looks at once, as every scheduler does each minute
	r.until("the schedule runs again", ran)
	r.until("the mailbox is in step", func() bool {
		c, err := a.Store().Cursor(t.Context(), ann)
		return err == nil && c.HistoryID == box.HistoryID()
	})
	r.equal(a.Store())
	r.wait(a.Store(), "ended", terminal)
}
