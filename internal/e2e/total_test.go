package e2e_test

import (
	"testing"
	"time"

	"headroom/internal/app"
	"headroom/internal/control/progress"
	"headroom/internal/lab/fakegoogle"
	"headroom/jobs"
)

// Every page of a listing says that there are 201 messages, and there are 700: the
// total is what the profile says, and then what was listed.
func TestTheTotalIsNotWhatListingsSay(t *testing.T) {
	t.Parallel()
	const messages = 700
	r := newSiteOf(t, fakegoogle.Options{Scale: scale, UserLimit: 1_000_000}, map[string]int{ann: messages})
	s := r.open()
	r.startBackfill()
	r.run(app.RoleScheduler, app.RoleWorker)
	var speed progress.Speed
	totals, exact := map[int64]bool{}, false
	var left time.Duration
	half := false
	r.wait(s, "done", func(j jobs.Job) bool {
		speed.Look(time.Now(), j)
		total, listed := progress.Total(j)
		totals[total], exact = true, listed
		if j.Progress.Done() >= messages/2 && !half && j.State.Live() {
			left, half = speed.ETA(j)
		}
		return j.State.Terminal()
	})
	delete(totals, 0) // before the profile came
	if len(totals) != 1 || !totals[messages] || !exact {
		t.Errorf("totals seen: %v, exact at the end: %v, want %d only", totals, exact, messages)
	}
	if !half || left <= 0 {
		t.Errorf("ETA at half: %s, known %v, want one", left, half)
	}
	for _, f := range []jobs.Filter{{}, {Query: "in:inbox"}} {
		if e := r.estimate(f, 0); e.Messages.Value == 201 || e.Messages.Value < 250 || e.Messages.Value > messages {
			t.Errorf("estimate of %+v says %+v messages", f, e.Messages)
		}
	}
}
