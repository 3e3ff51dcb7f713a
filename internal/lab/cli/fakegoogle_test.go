package cli

import "testing"

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
