package storetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/jobs"
)

var scheduleTests = []test{
	{"each slot runs once", testASlotIsRunOnce},
	{"a claimed slot asks for its work and is counted", testAClaimAsksForTheWorkAndIsCounted},
	{"an account without a cursor or calendars has nothing to sync", testThereIsNothingToAskForWithoutAMailboxOrCalendars},
	{"calendars are asked for once they were synced", testCalendarsAreAskedForOnceTheyAreSynced},
	{"reconciliation reads everything once", testReconciliationReadsEverythingOnce},
	{"a claim that missed a pause is refused", testAClaimThatKnowsNotOfAPauseIsRefused},
	{"the revision rises with changes of accounts", testTheRevisionRisesWithAccounts},
	{"a run by hand leaves the slot as it is", testRunningNowLeavesTheSlot},
}

var slot0 = time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)

// slotted returns a store in which ann's slot of a schedule is at slot0.
func slotted(t *T, schedule jobs.Schedule) Store {
	t.Helper()
	s := fresh(t)
	addAccount(t, s, ann)
	if err := s.InitSlots(t.Context(), []jobs.Slot{{Schedule: schedule, Account: ann, Spec: "0 * * * *", Slot: slot0}}); err != nil {
		t.Fatal(err)
	}
	return s
}

func addAccount(t *T, s Store, email string) {
	t.Helper()
	if err := s.AddAccount(t.Context(), jobs.Account{Email: email, Project: "prod"}); err != nil {
		t.Fatal(err)
	}
}

// claim is of ann's slot that is hours after slot0, and follows the one before.
func claim(schedule jobs.Schedule, hours int) jobs.SlotClaim {
	d := time.Duration(hours) * time.Hour
	return jobs.SlotClaim{Schedule: schedule, Account: ann, Spec: "0 * * * *", After: slot0.Add(d - time.Hour), Slot: slot0.Add(d), At: slot0.Add(d + time.Minute)}
}

func pauses(t *T, s Store) int64 {
	t.Helper()
	return must[jobs.ScheduleRevision](t)(s.ScheduleRevision(t.Context())).Pauses
}

// pinned gives ann's mailbox a cursor, so that there is something to be synced.
func pinned(t *T, s Store) {
	t.Helper()
	if err := s.SaveProfile(t.Context(), start(t, s).Ref(), jobs.Profile{HistoryID: 100}); err != nil {
		t.Fatal(err)
	}
}

func testASlotIsRunOnce(t *T) {
	stores := handles(t, 3)
	const n = 40
	var seen []jobs.Slot
	for i := range n {
		account := fmt.Sprintf("user%d@example.com", i)
		addAccount(t, stores[0], account)
		seen = append(seen, jobs.Slot{Schedule: jobs.ScheduleMail, Account: account, Spec: "0 * * * *", Slot: slot0})
	}
	if err := stores[0].InitSlots(t.Context(), seen); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	won := map[string]int{}
	var all sync.WaitGroup
	for _, s := range stores {
		all.Go(func() {
			for hour := range 3 {
				var claims []jobs.SlotClaim
				for _, one := range seen {
					c := claim(one.Schedule, hour+1)
					c.Account = one.Account
					claims = append(claims, c)
				}
				answers, err := s.ClaimSlots(t.Context(), 1, claims)
				if err != nil {
					t.Errorf("ClaimSlots = %v", err)
					return
				}
				for i, a := range answers {
					if a.Slot.Before(claims[i].Slot) {
						t.Errorf("%s: the slot is %s after the claim", claims[i].ID(), a.Slot)
					}
					if a.Won {
						mu.Lock()
						won[claims[i].ID()]++
						mu.Unlock()
					}
				}
			}
		})
	}
	all.Wait()
	if len(won) != 3*n {
		t.Errorf("%d slots were won, want %d", len(won), 3*n)
	}
	for id, times := range won {
		if times != 1 {
			t.Errorf("%s was won %d times", id, times)
		}
	}
}

func testAClaimAsksForTheWorkAndIsCounted(t *T) {
	s := slotted(t, jobs.ScheduleMail)
	pinned(t, s)
	c := claim(jobs.ScheduleMail, 3)
	c.After, c.Missed, c.CatchUp = slot0, 2, true
	got, err := s.ClaimSlots(t.Context(), pauses(t, s), []jobs.SlotClaim{c})
	if diff := cmp.Diff([]jobs.ClaimedSlot{{Won: true, Result: jobs.SlotAsked, Slot: c.Slot}}, got); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	if cursor := must[jobs.Cursor](t)(s.Cursor(t.Context(), ann)); cursor.AskedAt.IsZero() {
		t.Error("the slot was won, and no sync was asked for")
	}
	want := []jobs.Slot{{Schedule: jobs.ScheduleMail, Account: ann, Spec: "0 * * * *", Slot: c.Slot, RanAt: c.At,
		Result: jobs.SlotAsked, Runs: 1, CatchUps: 1, Missed: 2}}
	if diff := cmp.Diff(want, must[jobs.ScheduleSnapshot](t)(s.ScheduleSnapshot(t.Context())).Slots); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	again := must[[]jobs.ClaimedSlot](t)(s.ClaimSlots(t.Context(), pauses(t, s), []jobs.SlotClaim{c}))
	if diff := cmp.Diff([]jobs.ClaimedSlot{{Slot: c.Slot}}, again); diff != "" {
		t.Errorf("the same claim once more (-want +got):\n%s", diff)
	}
}

func testThereIsNothingToAskForWithoutAMailboxOrCalendars(t *T) {
	for _, schedule := range jobs.Schedules {
		s := slotted(t, schedule)
		got := must[[]jobs.ClaimedSlot](t)(s.ClaimSlots(t.Context(), pauses(t, s), []jobs.SlotClaim{claim(schedule, 1)}))
		if !got[0].Won || got[0].Result != jobs.SlotNothing {
			t.Errorf("%s: %+v, want the slot to be won and nothing asked for", schedule, got[0])
		}
		if _, err := s.CalendarList(t.Context(), ann); !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("%s made a list of calendars, err %v", schedule, err)
		}
	}
}

func testCalendarsAreAskedForOnceTheyAreSynced(t *T) {
	s := slotted(t, jobs.ScheduleCalendar)
	job, _, err := s.StartCalendarSync(t.Context(), ann)
	if err != nil {
		t.Fatal(err)
	}
	got := must[[]jobs.ClaimedSlot](t)(s.ClaimSlots(t.Context(), pauses(t, s), []jobs.SlotClaim{claim(jobs.ScheduleCalendar, 1)}))
	if l := must[jobs.CalendarList](t)(s.CalendarList(t.Context(), ann)); got[0].Result != jobs.SlotAsked || l.AskedAt.IsZero() || l.AskedAll {
		t.Errorf("%+v, list %+v, want a sync to be asked for", got[0], l)
	}
	if _, _, err := s.Pause(t.Context(), job.ID); err != nil {
		t.Fatal(err)
	}
	got = must[[]jobs.ClaimedSlot](t)(s.ClaimSlots(t.Context(), pauses(t, s), []jobs.SlotClaim{claim(jobs.ScheduleCalendar, 2)}))
	if got[0].Result != jobs.SlotNothing {
		t.Errorf("of a job that is paused: %+v", got[0])
	}
}

func testReconciliationReadsEverythingOnce(t *T) {
	s := slotted(t, jobs.ScheduleReconcile)
	pinned(t, s)
	if _, _, err := s.StartCalendarSync(t.Context(), ann); err != nil {
		t.Fatal(err)
	}
	got := must[[]jobs.ClaimedSlot](t)(s.ClaimSlots(t.Context(), pauses(t, s), []jobs.SlotClaim{claim(jobs.ScheduleReconcile, 1)}))
	if got[0].Result != jobs.SlotAsked {
		t.Errorf("%+v", got[0])
	}
	if c := must[jobs.Cursor](t)(s.Cursor(t.Context(), ann)); c.AskedAt.IsZero() || c.Snapshot.Phase != jobs.SnapshotAsked {
		t.Errorf("mailbox: %+v, want a snapshot to be asked for", c)
	}
	if l := must[jobs.CalendarList](t)(s.CalendarList(t.Context(), ann)); l.AskedAt.IsZero() || !l.AskedAll {
		t.Errorf("calendars: %+v, want all to be asked for", l)
	}
}

func testAClaimThatKnowsNotOfAPauseIsRefused(t *T) {
	s := slotted(t, jobs.ScheduleMail)
	before := pauses(t, s)
	p := jobs.SchedulePause{Schedule: jobs.ScheduleMail, Account: "ANN@example.com"}
	for range 2 { // to pause twice is to pause
		if err := s.PauseSchedules(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.ClaimSlots(t.Context(), before, []jobs.SlotClaim{claim(jobs.ScheduleMail, 1)}); !errors.Is(err, jobs.ErrStale) {
		t.Errorf("ClaimSlots = %v, want jobs.ErrStale", err)
	}
	roll := must[jobs.ScheduleSnapshot](t)(s.ScheduleSnapshot(t.Context()))
	if len(roll.Pauses) != 1 || !roll.Pauses[0].Covers(jobs.ScheduleMail, "example.com", ann) || !roll.Pauses[0].ResumedAt.IsZero() || !roll.Slots[0].Slot.Equal(slot0) {
		t.Errorf("pauses %+v, slots %+v", roll.Pauses, roll.Slots)
	}
	if err := s.ResumeSchedules(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := s.ResumeSchedules(t.Context(), p); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("resumed twice: %v, want jobs.ErrNotFound", err)
	}
	got := must[[]jobs.ClaimedSlot](t)(s.ClaimSlots(t.Context(), pauses(t, s), []jobs.SlotClaim{claim(jobs.ScheduleMail, 1)}))
	if !got[0].Won {
		t.Errorf("after the pause: %+v", got[0])
	}
}

func testTheRevisionRisesWithAccounts(t *T) {
	s := fresh(t)
	revision := func() int64 {
		return must[jobs.ScheduleRevision](t)(s.ScheduleRevision(t.Context())).Accounts
	}
	first := revision()
	addAccount(t, s, ann)
	if revision() == first {
		t.Error("an account was added, and the revision stayed")
	}
	first = revision()
	if err := s.AssignAccount(t.Context(), ann, new("acme"), nil); err != nil {
		t.Fatal(err)
	}
	if revision() == first {
		t.Error("an account was assigned, and the revision stayed")
	}
}

func testRunningNowLeavesTheSlot(t *T) {
	s := slotted(t, jobs.ScheduleMail)
	pinned(t, s)
	addAccount(t, s, "bob@example.com")
	asked, err := s.RunSchedule(t.Context(), jobs.ScheduleMail, []string{"Ann@example.com", "bob@example.com"}, slot0.Add(time.Minute))
	if err != nil || asked != 1 {
		t.Errorf("RunSchedule = %d, %v, want ann only, whose mailbox is known", asked, err)
	}
	row := must[jobs.ScheduleSnapshot](t)(s.ScheduleSnapshot(t.Context())).Slots[0]
	if !row.Slot.Equal(slot0) || row.Runs != 1 || !row.RanAt.Equal(slot0.Add(time.Minute)) || row.Result != jobs.SlotAsked {
		t.Errorf("row %+v", row)
	}
}
