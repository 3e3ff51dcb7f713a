package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDemoFailsBeforeItSaysAnything(t *testing.T) {
	headroom(t, "demo", "--redis", "nonsense").fails(t, 2, "--redis: not the URL of a Redis; its form is")
	headroom(t, "demo", "--scale", "0").fails(t, 2, "--scale 0 is not from 1 to 100")
	headroom(t, "demo", "--mbox", "/nowhere").fails(t, 1, "no such file or directory; give --mbox an mbox file")
	dead := headroom(t, "demo", "--redis", "redis://127.0.0.1:1")
	dead.fails(t, 1, "no Redis at redis://127.0.0.1:1: connection refused; start one (redis-server)")
	if strings.Contains(dead.stderr, "remove the run's") {
		t.Errorf("stderr = %q, want nothing of a clean-up that had nothing to do", dead.stderr)
	}
}

func TestDemoOfLittleMailSaysNoUtilization(t *testing.T) {
	mbox := filepath.Join(t.TempDir(), "little.mbox")
	text := strings.Repeat("From ann@example.com  Thu Jan 01 00:00:00 2026\nSubject: hello\n\nHello.\n\n", 4)
	if err := os.WriteFile(mbox, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"demo", "--mbox", mbox, "--scale", "50", "--meter", "anchored", "--redis", realRedis.URL()}
	got := decode[map[string]any](t, headroom(t, append(args, "--json")...))
	for key, want := range map[string]any{"messages": 4.0, "stored": 4.0, "identical": 4.0, "interactive_denied": 0.0, "refused_by_google": 0.0, "meter": "anchored", "backfill_utilization": nil} {
		if value, there := got[key]; value != want || !there {
			t.Errorf("%s = %v, want %v", key, value, want)
		}
	}
	r := headroom(t, args...)
	for _, want := range []string{"50 times faster: a minute of it takes 1.2s", "4 of 4 stored, 4 identical", "used (too short a run to say how much)", "Every promise was kept"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("stdout lacks %q: %s", want, r.stdout)
		}
	}
	if r.code != 0 {
		t.Errorf("exit code = %d: %s", r.code, r.stderr)
	}
}
