package api_test

import (
	"testing"
	"time"

	"headroom/internal/control"
	"headroom/jobs"
)

func TestAPISchedules(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, a := range []jobs.Account{{Email: ann, Project: "main"}, {Email: "bob@example.com", Project: "main", Tenant: "acme"}} {
		if err := s.store.AddAccount(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	first := ask[page[control.ScheduleLine]](s, 200, "GET", "/schedules?limit=1", nil)
	rest := ask[page[control.ScheduleLine]](s, 200, "GET", "/schedules?cursor="+first.Next, nil)
	if len(first.Items) != 1 || len(rest.Items) != len(jobs.Schedules)-1 || first.Items[0].Schedule != jobs.ScheduleMail || first.Items[0].Accounts != 2 || first.Items[0].Next.IsZero() {
		t.Errorf("schedules: %+v, then %+v", first, rest)
	}
	next := ask[page[control.ScheduledRun]](s, 200, "GET", "/schedules/calendar-sync/next?account="+ann+"&n=3", nil)
	if len(next.Items) != 3 || next.Items[1].Due.Sub(next.Items[0].Due) != 15*time.Minute {
		t.Errorf("next: %+v", next)
	}
	of := jobs.ScheduleScope{Tenant: "acme"}
	for _, step := range []struct {
		verb            string
		changed, paused bool
	}{{"pause", true, true}, {"pause", false, true}, {"resume", true, false}, {"resume", false, false}} {
		got := ask[control.SchedulePausing](s, 200, "POST", "/schedules/mail-sync/"+step.verb, of)
		if got.Changed != step.changed || got.Paused != step.paused || got.ScheduleScope != of {
			t.Errorf("%s = %+v", step.verb, got)
		}
		lines := ask[page[control.ScheduleLine]](s, 200, "GET", "/schedules?tenant=acme", nil)
		if paused := lines.Items[0].Paused == 1; paused != step.paused {
			t.Errorf("after %s: %+v", step.verb, lines.Items[0])
		}
	}
	if got := ask[control.ScheduleRun](s, 200, "POST", "/schedules/mail-sync/run", nil); got.Accounts != 2 || got.Asked != 0 {
		t.Errorf("run for all = %+v", got)
	}
	s.fails(409, "headroom backfill start "+ann, "POST", "/schedules/mail-sync/run", jobs.ScheduleScope{Account: ann})
	s.fails(404, "unknown account eve@example.com", "POST", "/schedules/mail-sync/pause", jobs.ScheduleScope{Account: "eve@example.com"})
	s.fails(404, "unknown tenant evil", "GET", "/schedules?tenant=evil", nil)
	s.fails(422, "an account or a tenant, not both", "POST", "/schedules/mail-sync/run", jobs.ScheduleScope{Account: ann, Tenant: "acme"})
	s.fails(422, `no schedule "tea"; there are mail-sync`, "POST", "/schedules/tea/pause", nil)
	s.fails(400, "query.cursor: it is not the next of an earlier answer", "GET", "/schedules?cursor=x", nil)
}
