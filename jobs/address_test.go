package jobs_test

import (
	"strings"
	"testing"

	"headroom/jobs"
)

func TestParseAddress(t *testing.T) {
	longest := strings.Repeat("a", 254-len("@example.com")) + "@example.com"
	for text, want := range map[string]string{
		"ann@example.com":            "ann@example.com",
		"Ann.B+x@Example.COM":        "ann.b+x@example.com",
		longest:                      longest,
		"\u212Aim@example.com":       "\u212Aim@example.com", // the Kelvin sign is no k
		"\u0130nci@example.com":      "\u0130nci@example.com",
		"\u00C4nne@example.com":      "\u00C4nne@example.com",
		"o'neil/x=y{z}@sub.example.": "o'neil/x=y{z}@sub.example.",
	} {
		if got, err := jobs.ParseAddress(text); got != want || err != nil {
			t.Errorf("ParseAddress(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                              "exactly one @",
		"ann":                           "exactly one @",
		"@example.com":                  "exactly one @",
		"ann@":                          "exactly one @",
		"ann@b@example.com":             "exactly one @",
		"ann b@example.com":             "cannot be seen",
		"ann@example.com\n":             "cannot be seen",
		"ann\u00A0@example.com":         "cannot be seen",
		"ann\u200B@example.com":         "cannot be seen",
		"ann\x00@example.com":           "cannot be seen",
		"ann\xff@example.com":           "cannot be seen",
		"<ann@example.com>":             "bare address",
		"ann@example.com,":              "bare address",
		"a:b@example.com":               "bare address",
		longest + "m":                   "255 characters is too long",
		strings.Repeat("x", 3000) + "@": "too long",
	} {
		got, err := jobs.ParseAddress(text)
		if err == nil || got != "" || !strings.Contains(err.Error(), want) || len(err.Error()) > 400 {
			t.Errorf("ParseAddress(%q) = %q, %v, want a short error with %q", text, got, err, want)
		}
	}
}

func TestOnlyASCIIIsFolded(t *testing.T) {
	for text, want := range map[string]string{
		"ANN@Example.com":     "ann@example.com",
		"\u212A@\u0130.ex":    "\u212A@\u0130.ex",
		"[\x80\xff]@`{Zz}.ex": "[\x80\xff]@`{zz}.ex",
	} {
		if got := jobs.FoldAddress(text); got != want {
			t.Errorf("FoldAddress(%q) = %q, want %q", text, got, want)
		}
	}
	if kelvin, k := jobs.BackfillID("\u212A@example.com"), jobs.BackfillID("K@example.com"); kelvin == k || k != "backfill:k@example.com" {
		t.Errorf("backfills %q and %q, want two, of two people", kelvin, k)
	}
}
