package main

import (
	"strings"
	"testing"
	"time"
)

func TestABenchmarkThatIsStoppedSaysSo(t *testing.T) {
	p := start(t, "bench", "requeue", "--redis", realRedis.URL())
	for deadline := time.Now().Add(30 * time.Second); ; {
		if _, stderr := p.out(); strings.Contains(stderr, "bench requeue:") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no word of progress within 30 s")
		}
		select {
		case code := <-p.ended:
			p.ended <- code
			_, stderr := p.out()
			t.Fatalf("ended with %d: %s", code, stderr)
		case <-time.After(10 * time.Millisecond):
		}
	}
	code := p.stop()
	_, stderr := p.out()
	if code != 130 || !strings.HasSuffix(stderr, "\nheadroom: the benchmark was stopped before its end\n") {
		t.Errorf("exit code = %d, stderr = %q", code, stderr)
	}
}
