package workers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/jobs"
)

func deadCursor() error {
	return &jobs.CallError{Class: jobs.ClassCursor, Reason: "invalidPageToken", Err: errors.New("400")}
}

func TestAListingGoesOnInTheNextSlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 100, perPage: 10, latency: time.Second})
		if err := b.slice(b.ref); err != nil {
			t.Fatalf("slice = %v, want nil", err)
		}
		// The profile and four pages in five seconds.
		row := b.store.job(b.ref.Job)
		if row.Progress.Listed != 40 || row.Checkpoint.PageToken != "40" || row.Checkpoint.Listed {
			t.Errorf("row = %+v, want 40 listed, the next page at 40", row)
		}
		if row := b.toEnd(); row.Progress.Stored != 100 || !row.Checkpoint.Listed {
			t.Errorf("row at the end = %+v, want all 100", row)
		}
		if b.box.made("profile") != 1 || b.box.made("list 30") != 1 {
			t.Errorf("calls %q, want the profile and each page once", b.box.calls)
		}
	})
}

func TestARunAfterAnotherKeepsItsHistoryIDAndAsksHowMuchThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 30})
		b.store.Edit(b.ref.Job, func(j *jobs.Job) { j.Checkpoint.HistoryID = 42 })
		row := b.toEnd()
		if row.Checkpoint.HistoryID != 42 || row.Progress.Expected != 30 || b.box.made("profile") != 1 {
			t.Errorf("row = %+v after %d profiles, want history id 42 and 30 expected after 1", row, b.box.made("profile"))
		}
	})
}

func TestADeadPageTokenStartsTheListingOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 40, perPage: 10})
		b.box.fault = func(call string, nth int) error {
			if call == "list 20" && nth == 1 {
				return deadCursor()
			}
			return nil
		}
		if err := b.slice(b.ref); err != nil {
			t.Fatalf("slice = %v, want nil", err)
		}
		if row := b.store.job(b.ref.Job); row.State != jobs.Completed || row.Progress.Listed != 40 || row.Progress.Stored != 40 {
			t.Errorf("row = %+v, want 40 listed and stored", row)
		}
		if got := b.box.made("list "); got != 2 {
			t.Errorf("first page listed %d times, want 2", got)
		}
	})
}

func TestAFirstPageThatIsRefusedBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 40, perPage: 10})
		b.box.fault = func(call string, _ int) error {
			if call == "list " {
				return deadCursor()
			}
			return nil
		}
		parked := b.mustPark(b.ref)
		if !strings.Contains(parked.For, "invalidPageToken") || b.box.made("list ") != 1 {
			t.Errorf("parked for %q after %d calls, want the refusal after 1", parked.For, b.box.made("list "))
		}
	})
}

// TestPageTokensThatNeverWorkAreDoneWithout lists behind what was listed, by date.
func TestPageTokensThatNeverWorkAreDoneWithout(t *testing.T) {
	for _, tt := range []struct {
		name string
		box  *memMailbox
	}{
		{"dead on the second page", &memMailbox{n: 40, perPage: 10, fault: func(call string, _ int) error {
			if call == "list 10" {
				return deadCursor()
			}
			return nil
		}}},
		{"all dead", &memMailbox{n: 40, perPage: 10, fault: func(call string, _ int) error {
			if strings.HasPrefix(call, "list ") && call != "list " {
				return deadCursor()
			}
			return nil
		}}},
		{"a page that names itself", &memMailbox{n: 40, perPage: 10, loop: "10"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, tt.box)
				row := b.toEnd()
				if row.State != jobs.Completed || row.Progress.Listed != 40 || row.Progress.Stored != 40 || row.Checkpoint.Before.IsZero() {
					t.Errorf("row = %+v, want all 40, listed by date", row)
				}
				for i := range 40 {
					if id := fmt.Sprintf("get m%d", i); b.box.made(id) != 1 {
						t.Errorf("%q was made %d times, want once", id, b.box.made(id))
					}
				}
				if n := b.box.made("list "); n > 12 {
					t.Errorf("%d first pages, want a few", n)
				}
			})
		})
	}
}

func TestWhatAnEndlessListingNamedIsFetchedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 40, perPage: 10}, func(o *Options) { o.FailureBudget = 3 })
		b.box.fault = func(call string, _ int) error {
			if strings.HasPrefix(call, "list ") && call != "list " || strings.HasPrefix(call, "metadata") {
				return deadCursor()
			}
			return nil
		}
		row := b.toEnd()
		if row.State != jobs.Failed || row.Progress.Stored != 10 || !strings.Contains(row.LastError, "invalidPageToken") {
			t.Errorf("row = %+v, want it failed with the first page stored", row)
		}
	})
}

func TestTheNewestAreListedExactly(t *testing.T) {
	for _, tt := range []struct {
		name   string
		filter func(*memMailbox) jobs.Filter
		gone   string
		want   []int // from, to
		calls  []string
	}{
		{"within a page", func(*memMailbox) jobs.Filter { return jobs.Filter{First: 7} }, "", []int{0, 7}, []string{"list "}},
		{"a page and no more", func(*memMailbox) jobs.Filter { return jobs.Filter{First: 10} }, "", []int{0, 10}, []string{"list "}},
		{"across pages", func(*memMailbox) jobs.Filter { return jobs.Filter{First: 25} }, "", []int{0, 25}, []string{"list ", "list 10", "list 20"}},
		{"more than there are", func(*memMailbox) jobs.Filter { return jobs.Filter{First: 99} }, "", []int{0, 40}, []string{"list ", "list 10", "list 20", "list 30"}},
		{"one is gone", func(*memMailbox) jobs.Filter { return jobs.Filter{First: 10} }, "m3", []int{0, 11}, []string{"list ", "list 10"}},
		{"some are outside", func(b *memMailbox) jobs.Filter { return jobs.Filter{First: 3, Before: b.date(7)} }, "", []int{8, 11}, []string{"list ", "list "}},
		{"with a format of two passes", func(*memMailbox) jobs.Filter { return jobs.Filter{First: 12, Format: jobs.FormatMetadataFirst} }, "m3", []int{0, 13}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, &memMailbox{n: 40, perPage: 10})
				b.store.Edit(b.ref.Job, func(j *jobs.Job) { j.Filter = tt.filter(b.box) })
				b.box.fault = func(call string, _ int) error {
					if call == "get "+tt.gone {
						return &jobs.CallError{Class: jobs.ClassGone, Reason: "notFound", Err: errors.New("404")}
					}
					return nil
				}
				row := b.toEnd()
				want := map[string]bool{}
				for i := tt.want[0]; i < tt.want[1]; i++ {
					if id := fmt.Sprintf("m%d", i); id != tt.gone {
						want[id] = true
					}
				}
				got := map[string]bool{}
				for id, m := range b.store.messages() {
					got[id] = m.SHA256 != ""
				}
				delete(got, tt.gone)
				if diff := cmp.Diff(want, got); diff != "" || row.State != jobs.Completed || row.Progress.Stored != int64(len(want)) {
					t.Errorf("%+v; stored (-want +got):\n%s", row, diff)
				}
				lists := slices.DeleteFunc(slices.Clone(b.box.calls), func(c string) bool { return !strings.HasPrefix(c, "list") })
				if tt.calls != nil && !slices.Equal(lists, tt.calls) {
					t.Errorf("calls %q, want %q", lists, tt.calls)
				}
			})
		})
	}
}

func TestMetadataComesBeforeBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 60, perPage: 25, latency: 500 * time.Millisecond})
		b.store.Edit(b.ref.Job, func(j *jobs.Job) { j.Filter.Format = jobs.FormatMetadataFirst })
		row := b.toEnd()
		if row.State != jobs.Completed || row.Progress.Stored != 60 || row.Progress.Noted != 60 || row.Progress.Done() != 60 {
			t.Errorf("row = %+v, want each of 60 counted once as noted and once as stored", row)
		}
		if row.Slice < 2 {
			t.Errorf("all was done in %d slices, so nothing was resumed", row.Slice+1)
		}
		bodies := false
		for _, call := range b.box.calls {
			bodies = bodies || strings.HasPrefix(call, "get ")
			if strings.HasPrefix(call, "metadata ") && bodies {
				t.Fatalf("%q came after a body", call)
			}
			if !strings.HasPrefix(call, "list") && b.box.made(call) != 1 {
				t.Errorf("%q was made %d times", call, b.box.made(call))
			}
		}
		if m := b.store.messages()["m7"]; m.SHA256 == "" || m.ParseStatus != jobs.Parsed || m.Subject != "about m7" {
			t.Errorf("message m7 = %+v, want its body", m)
		}
	})
}

func TestAFilterThatGoogleRefusesFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 5})
		b.store.Edit(b.ref.Job, func(j *jobs.Job) { j.Filter.Labels = []string{"Work"} })
		b.box.fault = func(call string, _ int) error {
			if call == "list " {
				return &jobs.CallError{Class: jobs.ClassSearch, Reason: "invalidArgument", Err: errors.New("Invalid label: Work")}
			}
			return nil
		}
		if row := b.toEnd(); row.State != jobs.Failed || !strings.Contains(row.LastError, "Invalid label: Work") || b.box.made("list ") != 1 {
			t.Errorf("row = %+v after %d calls, want it failed after 1", row, b.box.made("list "))
		}
	})
}

func TestATransientListFaultBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, &memMailbox{n: 20})
		b.box.fault = func(call string, nth int) error {
			if call == "list " && nth <= 4 {
				return transient("backendError")
			}
			return nil
		}
		for i, want := range []time.Duration{1, 2, 4, 8} {
			started := time.Now()
			parked := b.mustPark(b.ref)
			if got := parked.Until.Sub(started); got != want*time.Second {
				t.Errorf("wait %d = %s, want %ds", i+1, got, want)
			}
			<-time.After(parked.Until.Sub(started))
		}
		if row := b.store.job(b.ref.Job); row.Failures != 4 || row.Refusals != 0 {
			t.Errorf("row = %+v, want 4 failures", row)
		}
		if row := b.toEnd(); row.State != jobs.Completed || row.Failures != 0 {
			t.Errorf("row at the end = %+v, want it completed and the failures forgotten", row)
		}
		if b.box.made("profile") != 1 {
			t.Errorf("profile asked %d times, want once: its history id is pinned", b.box.made("profile"))
		}
	})
}
