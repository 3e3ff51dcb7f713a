package sqlite_test

import (
	"testing"

	"headroom/jobs"
)

func TestWatchesAreListedByAccount(t *testing.T) {
	s, job := claimed(t)
	ctx, annsMail := t.Context(), jobs.WatchKey{Account: ann, Kind: jobs.WatchMail}
	if err := s.Renewed(ctx, job.Ref(), annsMail, hour, hour); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		account string
		after   jobs.WatchKey
		want    int
	}{
		{"Ann@example.com", jobs.WatchKey{}, 1},
		{"", jobs.WatchKey{}, 1},
		{"", annsMail, 0},
		{"bob@example.com", jobs.WatchKey{}, 0},
	} {
		if got := must[[]jobs.Watch](t)(s.Watches(ctx, tc.account, tc.after, 0)); len(got) != tc.want || tc.want == 1 && got[0].WatchKey != annsMail {
			t.Errorf("Watches of %q after %v = %+v, want %d", tc.account, tc.after, got, tc.want)
		}
	}
}
