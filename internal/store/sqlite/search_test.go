package sqlite_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"headroom/jobs"
)

func TestFindMessagesByLabelAndDate(t *testing.T) {
	s, job := claimed(t)
	ctx, at := t.Context(), time.UnixMilli(1767225600000).UTC()
	var results []jobs.Result
	for i, labels := range [][]string{{"INBOX"}, {"Label_1", "INBOX"}, {"label_1"}, {"Label_10"}, nil, {"Label_1"}} {
		m := message(fmt.Sprint("m", i), 7)
		m.Labels, m.InternalDate = labels, at.Add(time.Duration(i)*time.Second)
		results = append(results, jobs.Result{ID: m.ID, Outcome: jobs.ItemStored, Message: m})
	}
	must[jobs.Job](t)(s.AddListed(ctx, job.Ref(), jobs.Page{IDs: []string{"m0", "m1", "m2", "m3", "m4", "m5"}}))
	must[jobs.Job](t)(s.Commit(ctx, job.Ref(), results))
	for name, row := range map[string]struct {
		filter jobs.MessageFilter
		after  string
		limit  int
		want   []string
	}{
		"all":                       {want: []string{"m0", "m1", "m2", "m3", "m4", "m5"}},
		"a label, not its like":     {filter: jobs.MessageFilter{Label: "Label_1"}, want: []string{"m1", "m5"}},
		"a pattern is no label":     {filter: jobs.MessageFilter{Label: "Label%"}},
		"from a moment on":          {filter: jobs.MessageFilter{After: at.Add(4 * time.Second)}, want: []string{"m4", "m5"}},
		"before a moment":           {filter: jobs.MessageFilter{Before: at.Add(time.Second)}, want: []string{"m0"}},
		"a page":                    {after: "m1", limit: 2, want: []string{"m2", "m3"}},
		"a page of what is chosen":  {filter: jobs.MessageFilter{Label: "Label_1"}, after: "m1", limit: 2, want: []string{"m5"}},
		"a label and two moments":   {filter: jobs.MessageFilter{Label: "INBOX", After: at.Add(time.Second), Before: at.Add(time.Minute)}, want: []string{"m1"}},
		"the second of a moment":    {filter: jobs.MessageFilter{After: at, Before: at.Add(time.Millisecond)}, want: []string{"m0"}},
		"nothing after the last id": {after: "m5"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, m := range must[[]jobs.Message](t)(s.FindMessages(ctx, "ANN@example.com", row.filter, row.after, row.limit)) {
				got = append(got, m.ID)
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("found %q, want %q", got, row.want)
			}
			n, bytes, err := s.CountFound(ctx, ann, row.filter)
			if row.after == "" && (err != nil || n != int64(len(row.want)) || bytes != 100*n) {
				t.Errorf("CountFound = %d, %d, %v, want %d", n, bytes, err, len(row.want))
			}
		})
	}
	if got := must[[]jobs.Message](t)(s.FindMessages(ctx, "bob@example.com", jobs.MessageFilter{}, "", 0)); len(got) != 0 {
		t.Errorf("bob's messages = %+v", got)
	}
}

func TestFindJobs(t *testing.T) {
	s, job := claimed(t)
	ctx := t.Context()
	if err := s.AddAccount(ctx, jobs.Account{Email: "bob@example.com", Project: "prod"}); err != nil {
		t.Fatal(err)
	}
	part, _, err := s.StartBackfill(ctx, ann, jobs.Filter{Query: "has:attachment"})
	if err != nil {
		t.Fatal(err)
	}
	bobs, _, err := s.StartBackfill(ctx, "bob@example.com", jobs.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		filter jobs.JobFilter
		after  string
		limit  int
		want   []string
	}{
		"all":            {want: []string{job.ID, part.ID, bobs.ID}},
		"an account's":   {filter: jobs.JobFilter{Account: "Ann@example.com"}, want: []string{job.ID, part.ID}},
		"by state":       {filter: jobs.JobFilter{State: jobs.Queued}, want: []string{part.ID, bobs.ID}},
		"by kind":        {filter: jobs.JobFilter{Kind: jobs.MailSync}},
		"the first page": {limit: 1, want: []string{job.ID}},
		"the next page":  {after: job.ID, limit: 1, want: []string{part.ID}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, j := range must[[]jobs.Job](t)(s.FindJobs(ctx, row.filter, row.after, row.limit)) {
				got = append(got, j.ID)
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("found %q, want %q", got, row.want)
			}
		})
	}
}
