package main

import (
	"encoding/json"
	"net"
	"strings"
	"testing"
)

func TestAnUnusedConnectionDoesNotFailTheStop(t *testing.T) {
	t.Parallel() // it waits for seconds
	p := start(t, "fake-google")
	var first fakeStarted
	if err := json.Unmarshal([]byte(p.line("{")), &first); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(first.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if code := p.stop(); code != 0 {
		_, stderr := p.out()
		t.Errorf("exit code = %d: %s", code, stderr)
	}
}

func TestAMailboxIsCutAfterItsAddress(t *testing.T) {
	type cut struct {
		email, from string
		ok          bool
	}
	for spec, want := range map[string]cut{
		"ann@example.com=mail.mbox":  {"ann@example.com", "mail.mbox", true},
		"ann@example.com=a=b@c.mbox": {"ann@example.com", "a=b@c.mbox", true},
		"a=b@example.com=generate:3": {"a=b@example.com", "generate:3", true},
		"ann=generate:3":             {"ann", "generate:3", true},
		"ann@example.com=":           {"ann@example.com", "", false},
		"ann@example.com":            {"ann@example.com", "", false},
		"=generate:3":                {"", "generate:3", false},
		"":                           {"", "", false},
	} {
		var got cut
		if got.email, got.from, got.ok = cutMailbox(spec); got != want {
			t.Errorf("cutMailbox(%q) = %+v, want %+v", spec, got, want)
		}
	}
}
