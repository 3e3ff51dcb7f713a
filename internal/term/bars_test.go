package term

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestBarsEndWhateverBecameOfTheirWork(t *testing.T) {
	var out bytes.Buffer
	b := newBars(&out)
	whole, failed, running, timed := b.Add(), b.Add(), b.Add(), b.AddTimed("blobs")
	line := b.AddLine()
	for _, one := range []*Bar{whole, failed, running, timed} {
		one.Set(5, 10)
	}
	line.Say("people\x1b[2J")
	whole.Say("ann@example.com: completed")
	whole.Set(10, 10)
	whole.End(10, 10)
	whole.End(10, 10)
	failed.Say("bob@example.com: failed")
	failed.End(5, 10)
	closed := make(chan struct{})
	go func() { defer close(closed); b.Close() }()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Fatal("the bars did not end")
	}
	for _, want := range []string{"ann@example.com", "10/10", "completed", "5/10", "failed", "blobs 5/10", "people [2J"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the bars lack %q in %q", want, out.String())
		}
	}
}

func TestWithoutATerminalThereAreNoBars(t *testing.T) {
	b := NewBars(&bytes.Buffer{})
	one := b.Add()
	one.Say("nothing")
	one.Set(1, 2)
	one.End(1, 2)
	b.AddLine().Say("nothing")
	b.Close()
	if b != nil || one != nil {
		t.Errorf("bars = %v, %v, want none", b, one)
	}
}
