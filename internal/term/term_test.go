package term_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"headroom/internal/term"
)

func TestCleanTakesOutWhatMovesATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                            "plain",
		"Grüße, 你好, שלום":                  "Grüße, 你好, שלום",
		"می\u200cخواهم":                    "می\u200cخواهم",
		"a\x1b[31mred":                     "a [31mred",
		"a\u009b31mred":                    "a 31mred",
		"x\u202egpj.exe":                   "x gpj.exe",
		"x\u2066y\u2069\u061c\u200e\u200f": "x y    ",
		"one\ntwo\r\ttab\u2028\u0085":      "one two  tab  ",
		"zero\u200bwidth\ufeff":            "zero width ",
		"broken\xff":                       "broken\ufffd",
		"tag\U000e0041":                    "tag ",
	} {
		if got := term.Clean(text); got != want {
			t.Errorf("Clean(%q) = %q, want %q", text, got, want)
		}
	}
	if got := term.CleanLines("a\tb\u202ec\n"); got != "a\tb c\n" {
		t.Errorf("CleanLines = %q", got)
	}
}

func TestJSONMeansTheSameWhenItIsEscaped(t *testing.T) {
	for _, text := range []string{"x\u202egpj", "\u009b31m", "\U000e0041", "Grüße\x7f"} {
		doc, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		escaped := term.EscapeJSON(doc)
		var got string
		if err := json.Unmarshal(escaped, &got); err != nil || got != text {
			t.Errorf("EscapeJSON(%s) = %s: %q, %v", doc, escaped, got, err)
		}
		if clean := term.Clean(string(escaped)); clean != string(escaped) {
			t.Errorf("EscapeJSON(%s) = %q still moves a terminal", doc, escaped)
		}
	}
}

func TestOutputCleansAcrossWritesAndRemembersItsError(t *testing.T) {
	var out bytes.Buffer
	o := term.NewOutput(&out)
	for _, b := range []byte("ü\u202e!\n") {
		if _, err := o.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := o.Raw().Write([]byte("\x1b[1m")); err != nil || o.Err() != nil || out.String() != "ü !\n\x1b[1m" {
		t.Errorf("wrote %q, %v, %v", out.String(), err, o.Err())
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	defer full.Close()
	o = term.NewOutput(full)
	_, first := o.Write([]byte("x"))
	_, second := o.Raw().Write([]byte("y"))
	if first == nil || !errors.Is(second, first) || !errors.Is(o.Err(), first) {
		t.Errorf("errors = %v, %v, %v, want one for all", first, second, o.Err())
	}
	if term.IsTerminal(full) || term.IsTerminal(o) || term.IsTerminal(&out) {
		t.Error("a device or a buffer counts as a terminal")
	}
}

func TestOneStyleOfTime(t *testing.T) {
	at := time.Date(2026, 12, 1, 3, 4, 5, 6, time.FixedZone("", 3600))
	if got := term.TimeIn(at, at.Location()); got != "2026-12-01 03:04:05 +01:00" {
		t.Errorf("TimeIn = %q", got)
	}
	if got := term.Time(time.Time{}); got != term.None {
		t.Errorf("no time = %q", got)
	}
}
