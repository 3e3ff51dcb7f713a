package e2e_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"headroom/internal/app"
	"headroom/internal/control"
	"headroom/jobs"
)

// blobPath is where the raw bytes of a message are.
func (r *site) blobPath(sha string) string {
	return filepath.Join(r.cfg.Store.Blobs, sha[:2], sha[2:4], sha)
}

// flip changes one byte of a file, whose size stays.
func flip(t *testing.T, path string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)/2] ^= 1
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestAStoreIsCheckedAndRepaired: damaged bodies are never served, and a repair brings
// back what is lost through the backfill, under its quota.
func TestAStoreIsCheckedAndRepaired(t *testing.T) {
	t.Parallel()
	r := newSite(t, 60)
	a := r.run()
	r.startBackfill()
	if j := r.wait(a.Store(), "ended", terminal); j.State != jobs.Completed {
		t.Fatalf("job = %+v", j)
	}
	check := func(repair bool) control.StoreCheck {
		t.Helper()
		c, err := r.control().CheckStore(t.Context(), repair, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := check(false); !c.OK() || c.Blobs != 60 || c.Bytes == 0 {
		t.Errorf("check of a sound store = %+v", c)
	}

	all, err := a.Store().Messages(t.Context(), ann, "", 60)
	if err != nil || len(all) != 60 {
		t.Fatalf("%d messages, %v", len(all), err)
	}
	damaged, missing, short := all[3], all[7], all[11]
	flip(t, r.blobPath(damaged.SHA256))
	if err := os.Remove(r.blobPath(missing.SHA256)); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(r.blobPath(short.SHA256), 10); err != nil {
		t.Fatal(err)
	}
	stray, young := filepath.Join(r.cfg.Store.Blobs, "ab", "cd", strings.Repeat("abcd", 16)), filepath.Join(r.cfg.Store.Blobs, "00", "young")
	for _, path := range []string{stray, young} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("nobody's"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(stray, old, old); err != nil {
		t.Fatal(err)
	}

	for _, m := range []jobs.Message{damaged, short} {
		if _, _, err := a.Control().OpenMessage(t.Context(), ann, m.ID); !errors.Is(err, jobs.ErrDamaged) {
			t.Errorf("open a damaged message = %v", err)
		}
		resp, err := http.Get("http://" + a.Addr().String() + "/api/v1/accounts/" + ann + "/messages/" + m.ID + "/raw")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusInternalServerError || !strings.Contains(string(body), "headroom store check --repair") {
			t.Errorf("download of a damaged message = %d %s", resp.StatusCode, body)
		}
	}
	c := check(false)
	ids := []string{}
	for _, b := range c.Damaged {
		ids = append(ids, b.Message)
	}
	slices.Sort(ids)
	if c.OK() || !slices.Equal(ids, []string{damaged.ID, short.ID}) || len(c.Missing) != 1 || c.Missing[0].Message != missing.ID ||
		len(c.Unreferenced) != 1 || c.Unreferenced[0].Path != stray {
		t.Errorf("check = %+v", c)
	}

	before := r.fake.Meter().User(ann).Units
	c = check(true)
	if !c.OK() || c.Repair.Fetching != 3 || c.Repair.SetAside != 2 || c.Repair.Removed != 1 || !slices.Equal(c.Repair.Jobs, []string{jobs.BackfillID(ann)}) {
		t.Errorf("repair = %+v", c.Repair)
	}
	j := r.wait(a.Store(), "fetched again", func(j jobs.Job) bool { return j.State == jobs.Completed && j.Epoch > 1 })
	if p := j.Progress; p.Stored != 60 || p.Done() != 60 || p.Listed != 60 {
		t.Errorf("progress = %+v, want 60 messages stored", p)
	}
	r.arrived(a.Store())
	if c := check(false); !c.OK() {
		t.Errorf("check after the repair = %+v", c)
	}
	if spent := r.fake.Meter().User(ann).Units - before; spent < 3*20 || spent >= 4*20 { // a look at the history follows a backfill
		t.Errorf("the repair spent %d units, want those of 3 messages", spent)
	}
	for path, there := range map[string]bool{stray: false, young: true, filepath.Join(r.cfg.Store.Blobs, "damaged", damaged.SHA256): true} {
		if _, err := os.Stat(path); (err == nil) != there {
			t.Errorf("%s is there: %t, want %t", path, err == nil, there)
		}
	}
}

// TestARepairSaysWhatNobodyFetches: the backfill of the account is cancelled.
func TestARepairSaysWhatNobodyFetches(t *testing.T) {
	t.Parallel()
	r := newSite(t, 200)
	ctx, stop := context.WithCancel(t.Context())
	a, err := app.New(t.Context(), r.cfg, app.Options{Log: zaptest.NewLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	s := r.open()
	r.startBackfill()
	r.wait(s, "under way", storedAtLeast(10))
	if _, _, err := s.Cancel(t.Context(), jobs.BackfillID(ann)); err != nil {
		t.Fatal(err)
	}
	r.wait(s, "cancelled", terminal)
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	all, err := s.Messages(t.Context(), ann, "", 1)
	if err != nil {
		t.Fatal(err)
	}
	flip(t, r.blobPath(all[0].SHA256))
	c, err := r.control().CheckStore(t.Context(), true, nil)
	if err != nil || c.OK() || len(c.Repair.Left) != 1 || !strings.Contains(c.Repair.Left[0].Reason, "is cancelled; start it again") {
		t.Errorf("repair = %+v, %v", c.Repair, err)
	}
	// Whoever starts it again has it fetched.
	r.run()
	r.startBackfill()
	r.wait(s, "ended", terminal)
	if c, err := r.control().CheckStore(t.Context(), false, nil); err != nil || !c.OK() || c.Blobs != 200 {
		t.Errorf("check = %+v, %v", c, err)
	}
}
