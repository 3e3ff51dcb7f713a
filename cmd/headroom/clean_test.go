package main

import (
	"strings"
	"testing"

	"headroom/internal/term"
	"headroom/jobs"
)

// hostile is a text of a stranger's that clears a terminal, in two ways, turns
// what follows around, and makes lines of its own.
const hostile = "x\x1b[2J\u009b2J\u202egpj.exe\u2066\u200b\n\r\tforged"

// TestNoTextOfAStrangersMovesATerminal: subjects, names, reasons and ids, in tables,
// in JSON, in errors and where a command line is said back.
func TestNoTextOfAStrangersMovesATerminal(t *testing.T) {
	w := newWorked(t)
	w.do(w.store.AddListed(t.Context(), w.ref, jobs.Page{IDs: []string{"a", hostile}}))
	w.do(w.store.Commit(t.Context(), w.ref, []jobs.Result{
		{ID: "a", Outcome: jobs.ItemStored, Message: &jobs.Message{
			Account: "ann@example.com", ID: "a", ThreadID: hostile, Subject: hostile, Labels: []string{hostile}, InternalDate: receivedAt,
			ParseStatus: jobs.ParseFailed, ParseError: hostile, SHA256: strings.Repeat("0", 64), Attachments: []jobs.Attachment{{Part: "1", Filename: hostile, MimeType: hostile, SHA256: strings.Repeat("0", 64)}},
		}},
		{ID: hostile, Outcome: jobs.ItemFailed, Failure: &jobs.Failure{Phase: "fetch", Class: jobs.ClassItem, Reason: hostile, Attempts: 5, GivenUp: true}},
	}))
	w.finish(jobs.Failed, hostile)
	for _, args := range [][]string{
		{"messages", "list", "ann@example.com"}, {"messages", "get", "ann@example.com", "a"}, {"messages", "get", "ann@example.com", hostile},
		{"backfill", "show", "ann@example.com"}, {"backfill", "list"}, {"backfill", "failures", "ann@example.com"}, {"backfill", "watch", "ann@example.com"},
		{"backfill", "failures", "ann@example.com", "--csv", "-"}, {"backfill", "start", "ann@example.com", "--dry-run", "--query", hostile},
		{"calendar", "list", hostile}, {"schedule", "run", hostile}, {hostile}, {"account", "list", "--" + hostile},
		{"account", "add", hostile + "@example.com", "--project", "main"}, {"account", "list", "--set", hostile}, {"run", "--config", hostile},
	} {
		for _, asJSON := range []bool{false, true} {
			if asJSON {
				args = append(args, "--json")
			}
			r := w.headroom(args...)
			if r.stdout+r.stderr == "" {
				t.Errorf("%q says nothing", args)
			}
			for _, text := range []string{r.stdout, r.stderr} {
				if clean := term.CleanLines(text); clean != text {
					t.Errorf("%q prints what moves a terminal: %q", args, text)
				}
				if !strings.Contains(strings.Join(args, " "), "--csv") && strings.Contains(text, "\n\tforged") || strings.Contains(text, "\nforged") {
					t.Errorf("%q lets a stranger begin a line: %q", args, text)
				}
			}
		}
	}
}
