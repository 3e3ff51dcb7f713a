package e2e_test

import (
	"database/sql"
	"fmt"
	"maps"
	"os/exec"
	"testing"
	"time"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/control"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

// slots reads the slots of a schedule, by account.
func (r *site) slots(s *sqlite.Store, schedule jobs.Schedule) map[string]jobs.Slot {
	r.t.Helper()
	roll, err := s.ScheduleSnapshot(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	of := map[string]jobs.Slot{}
	for _, slot := range roll.Slots {
		if slot.Schedule == schedule {
			of[slot.Account] = slot
		}
	}
	return of
}

// TestASchedulerKilledBeforeASlot: of three processes one is killed right before
// the moment of a schedule. Every account runs then and afterwards, once a slot.
func TestASchedulerKilledBeforeASlot(t *testing.T) {
	t.Parallel()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	const accounts, every = 20, 2 * time.Second
	r := newSite(t, 0)
	for i := range accounts - 1 {
		if _, err := r.control().AddAccount(t.Context(), fmt.Sprintf("user%d@example.com", i), "main", control.Assignment{}); err != nil {
			t.Fatal(err)
		}
	}
	var schedulers []*exec.Cmd
	for range 3 {
		schedulers = append(schedulers, r.process(path, "scheduler", "--set", "schedules.mail-sync.spec=@every 2s", "--set", "schedules.mail-sync.spread=0s"))
	}
	s := r.open()
	all := func(what string, ok func(jobs.Slot) bool) (at map[string]jobs.Slot) {
		t.Helper()
		r.until(what, func() bool {
			at = r.slots(s, jobs.ScheduleMail)
			n := 0
			for _, slot := range at {
				if ok(slot) {
					n++
				}
			}
			return n == accounts
		})
		return at
	}
	before := all("the first run of each account", func(slot jobs.Slot) bool { return slot.Runs > 0 })

	slot := time.Now().Truncate(every).Add(every)
	<-time.After(time.Until(slot.Add(-50 * time.Millisecond)))
	if err := schedulers[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := all("the run that it was killed before", func(one jobs.Slot) bool { return !one.Slot.Before(slot) })
	after := all("the run after that", func(one jobs.Slot) bool { return one.Slot.After(slot) })
	for account, was := range before {
		for _, is := range []jobs.Slot{killed[account], after[account]} {
			passed := int64(is.Slot.Sub(was.Slot) / every)
			if ran, missed := is.Runs-was.Runs, is.Missed-was.Missed; ran != passed || missed != 0 {
				t.Errorf("%s: %d runs and %d missed of %d slots", account, ran, missed, passed)
			}
		}
	}
}

// TestAReconciliationFindsWhatTheHistoryLost: a message was deleted, and the cursor
// is past that. No sync can tell, but the scheduled reading of everything does.
func TestAReconciliationFindsWhatTheHistoryLost(t *testing.T) {
	t.Parallel()
	r := newSite(t, 40)
	a := r.runBackfilled()
	box := r.fake.Mailbox(ann)
	lost := box.Messages()[7].ID
	box.Delete(lost)
	raw, err := sql.Open("sqlite", r.cfg.Store.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.Exec("UPDATE mailboxes SET history_id = ? WHERE account = ?", int64(box.HistoryID()), ann); err != nil {
		t.Fatal(err)
	}
	deleted := func() bool {
		m, err := a.Store().Trace(t.Context(), ann, lost)
		return err == nil && !m.DeletedAt.IsZero()
	}
	if j := r.sync(a.Store()); j.State != jobs.Completed || deleted() {
		t.Fatalf("sync = %+v, deleted %t, want the deletion unknown to it", j, deleted())
	}
	r.cfg.Schedules = maps.Clone(r.cfg.Schedules) // the first process has the other
	r.cfg.Schedules["reconciliation"] = config.Schedule{Spec: "@every 2s"}
	r.run(app.RoleScheduler)
	r.until("the deletion is found", deleted)
	r.equal(a.Store())
	if slot := r.slots(a.Store(), jobs.ScheduleReconcile)[ann]; slot.Runs == 0 || slot.Result != jobs.SlotAsked {
		t.Errorf("slot = %+v, want a run that asked for the work", slot)
	}
}
