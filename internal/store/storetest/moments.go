package storetest

import (
	"time"

	"headroom/jobs"
)

var momentTests = []test{
	{"moments in the future are set back once", testMomentsInTheFutureAreSetBack},
}

// The store's clock was two days ahead for a while.
func testMomentsInTheFutureAreSetBack(t *T) {
	s := fresh(t)
	ctx := t.Context()
	t.pass(48 * time.Hour)
	job := start(t, s)
	must[jobs.Job](t)(s.Park(ctx, job.Ref(), jobs.Park{For: "user-minute", Until: t.now().Add(time.Minute), Refused: true}))
	t.pass(-48 * time.Hour)
	found := must[[]jobs.RepairedMoment](t)(s.RepairMoments(ctx))
	if len(found) != 1 || found[0].What != "job" || found[0].Count != 1 || found[0].Furthest.Before(t.now().Add(47*time.Hour)) {
		t.Errorf("RepairMoments = %+v, want the row of one job", found)
	}
	job = must[jobs.Job](t)(s.Job(ctx, job.ID))
	if wait := job.WaitUntil.Sub(t.now()); wait < 58*time.Second || wait > time.Minute || job.UpdatedAt.After(t.now()) {
		t.Errorf("the job waits for %s, written at %s; want its minute from now", wait, job.UpdatedAt)
	}
	if again := must[[]jobs.RepairedMoment](t)(s.RepairMoments(ctx)); len(again) != 0 {
		t.Errorf("RepairMoments again = %+v, want nothing left", again)
	}
}
