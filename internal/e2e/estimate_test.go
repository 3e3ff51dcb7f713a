package e2e_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"headroom/config"
	"headroom/internal/control/estimate"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

// estimate asks what a backfill of ann's takes.
func (r *site) estimate(filter jobs.Filter, sample int) estimate.Estimate {
	r.t.Helper()
	e, err := r.control().Estimate(r.t.Context(), ann, filter, sample)
	if err != nil {
		r.t.Fatal(err)
	}
	return e
}

// newPriced is a site whose mailbox holds 1,200 messages: 60 of them in spam and 40
// in trash, 500 with label Work, one of which is trash.
func newPriced(t *testing.T) *site {
	t.Helper()
	r := newSiteOf(t, fakegoogle.Options{Scale: scale}, map[string]int{ann: 0})
	box := r.fake.Mailbox(ann)
	for i := range 1200 {
		raw := fmt.Appendf(nil, "Subject: s%d\r\nDate: %s\r\nMessage-ID: <%d@example.com>\r\n\r\n%0*d\r\n", i,
			time.Date(2025, 1, 1, i, 0, 0, 0, time.UTC).Format(time.RFC1123Z), i, 900+i%100, i)
		switch {
		case i < 60:
			box.Add(raw, "SPAM")
		case i < 99:
			box.Add(raw, "TRASH")
		case i == 99:
			box.Add(raw, "TRASH", "Work")
		case i < 599:
			box.Add(raw, "INBOX", "Work")
		default:
			box.Add(raw, "INBOX")
		}
	}
	return r
}

func TestWhatBackfillsTake(t *testing.T) {
	r := newPriced(t)
	dates := jobs.Filter{After: time.Date(2025, 2, 1, 0, 0, 0, 0, time.UTC), Before: time.Date(2025, 2, 11, 0, 0, 0, 0, time.UTC)}
	for _, test := range []struct {
		name     string
		filter   jobs.Filter
		messages int64
		units    [3]int64 // by gmail-2026-05, gmail-2026-10, gmail-legacy
		spent    int64
	}{
		{"all mail", jobs.Filter{}, 1100, [3]int64{22017, 66017, 5517}, 3},
		{"with spam and trash", jobs.Filter{SpamTrash: true}, 1200, [3]int64{24017, 72017, 6017}, 1},
		{"metadata first", jobs.Filter{Format: jobs.FormatMetadataFirst}, 1100, [3]int64{44017, 88017, 11017}, 3},
		{"the newest", jobs.Filter{First: 700}, 700, [3]int64{14012, 42012, 3512}, 3},
		// The label's count is unsure by what lies in spam and trash, so ids are listed.
		{"a label", jobs.Filter{Labels: []string{"Work"}}, 499, [3]int64{9987, 29947, 2502}, 4 + 5},
		{"two labels", jobs.Filter{Labels: []string{"INBOX", "Work"}}, 499, [3]int64{9987, 29947, 2502}, 3 + 5},
		{"a label of spam and trash too", jobs.Filter{Labels: []string{"Work"}, SpamTrash: true}, 500, [3]int64{10007, 30007, 2507}, 2},
		// Ten days and a loose one to either side, of 24 messages each.
		{"dates", dates, 288, [3]int64{5767, 17287, 1447}, 3 + 5},
		{"a query", jobs.Filter{Query: "subject:s1100"}, 1, [3]int64{27, 67, 12}, 3 + 5},
		{"nothing", jobs.Filter{Query: "subject:none"}, 0, [3]int64{7, 7, 7}, 3 + 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			r.t = t
			before := r.fake.Meter().User(ann).Units
			e := r.estimate(test.filter, 0)
			if e.Messages.Value != test.messages || e.Messages.Least > e.Messages.Value || e.Messages.Most < e.Messages.Value || e.Known.Value != 0 || e.Bytes != nil {
				t.Errorf("estimate = %+v, want %d messages, none of them known, and no bytes", e, test.messages)
			}
			got := [3]int64{}
			for i, p := range e.Prices {
				got[i] = p.Units.Value
			}
			if got != test.units || !e.Own().Own || e.Prices[0].List != "gmail-2026-05" {
				t.Errorf("units = %v, want %v; %+v", got, test.units, e.Prices)
			}
			if spent := r.fake.Meter().User(ann).Units - before; spent != test.spent || e.Spent != spent {
				t.Errorf("asking cost %d by Google, %d by the estimate, want %d", spent, e.Spent, test.spent)
			}
		})
	}
}

func TestHowLongABackfillTakes(t *testing.T) {
	r := newPriced(t)
	e := r.estimate(jobs.Filter{}, 0)
	own := e.Own()
	// 22,017 units at four fifths of 6,000 a minute.
	if want := 22017.0 / 4800 * 60 / scale; own.Seconds < want*0.999 || own.Seconds > want*1.001 || own.BoundBy != "user-minute" || own.Ceiling != 4800 {
		t.Errorf("takes %v s bound by %s at %v a minute, want %v s", own.Seconds, own.BoundBy, own.Ceiling, want)
	}
	if own.DayUnits != 80_000_000 || own.DayShare != 22017.0/80_000_000 {
		t.Errorf("share %v of %d units", own.DayShare, own.DayUnits)
	}
	p, budget := r.cfg.Google.Projects["main"], int64(10_000)
	p.Budget = map[string]config.Budget{"gmail-2026-05": {DailyUnits: &budget}}
	r.cfg.Google.Projects["main"] = p
	if own := r.estimate(jobs.Filter{}, 0).Own(); own.BoundBy != "project-day" || own.Seconds < 2*86400/scale {
		t.Errorf("with a budget of 10,000 units a day: %v s bound by %s, want more than two days", own.Seconds, own.BoundBy)
	}
}

func TestBytesOfABackfill(t *testing.T) {
	r := newPriced(t)
	e := r.estimate(jobs.Filter{Labels: []string{"Work"}}, 10)
	var want int64
	for _, m := range r.fake.Mailbox(ann).Messages() {
		if slices.Contains(m.Labels, "Work") && !slices.Contains(m.Labels, "TRASH") {
			want += int64(m.Size)
		}
	}
	if e.Bytes == nil || e.Bytes.Least > want || e.Bytes.Most < want || e.Bytes.Most > 2*want || e.Spent != 4+5+10*20 {
		t.Errorf("bytes = %+v for %d units, want about %d for 209 units", e.Bytes, e.Spent, want)
	}
}

// What is stored costs nothing but its listing, and tells how large the rest is.
func TestEstimateOfWhatIsPartlyStored(t *testing.T) {
	r := newPriced(t)
	s := r.open()
	if _, _, err := s.StartBackfill(t.Context(), ann, jobs.Filter{}); err != nil {
		t.Fatal(err)
	}
	r.storeSome(s, 300)
	for _, filter := range []jobs.Filter{{}, {Labels: []string{"INBOX"}}, {Query: "subject:s"}} {
		e := r.estimate(filter, 10)
		if e.Known.Value != 300 || e.Fetch.Value != e.Messages.Value-300 {
			t.Errorf("filter %+v: %+v known, %+v to fetch of %+v, want 300 known", filter, e.Known, e.Fetch, e.Messages)
		}
		if units := e.Fetch.Value*20 + (e.Messages.Value+499)/500*5 + 1 + 1; e.Own().Units.Value != units {
			t.Errorf("filter %+v: %d units, want %d", filter, e.Own().Units.Value, units)
		}
		if e.Spent > 4+15 {
			t.Errorf("filter %+v: asking cost %d units although the stored sizes tell", filter, e.Spent)
		}
	}
	if e := r.estimate(jobs.Filter{First: 200}, 0); e.Known.Value != 200 || e.Fetch.Value != 0 {
		t.Errorf("the newest 200: %+v known, %+v to fetch, want all known", e.Known, e.Fetch)
	}
}

// storeSome stores the newest n messages of the fake's.
func (r *site) storeSome(s *sqlite.Store, n int) {
	r.t.Helper()
	job, err := s.Job(r.t.Context(), jobs.BackfillID(ann))
	if err != nil {
		r.t.Fatal(err)
	}
	job, err = s.Claim(r.t.Context(), job.Ref(), time.Minute)
	if err != nil {
		r.t.Fatal(err)
	}
	all := r.fake.Mailbox(ann).Messages()
	all = all[:n]
	page := jobs.Page{Next: "more"}
	var results []jobs.Result
	for _, m := range all {
		page.IDs = append(page.IDs, m.ID)
		results = append(results, jobs.Result{ID: m.ID, Outcome: jobs.ItemStored, Message: &jobs.Message{
			Account: ann, ID: m.ID, Labels: m.Labels, Size: int64(m.Size), SHA256: fmt.Sprintf("%064d", 1), ParseStatus: jobs.Parsed}})
	}
	if _, err := s.AddListed(r.t.Context(), job.Ref(), page); err != nil {
		r.t.Fatal(err)
	}
	if _, err := s.Commit(r.t.Context(), job.Ref(), results); err != nil {
		r.t.Fatal(err)
	}
}
