package term

import (
	"bytes"
	"strings"
	"testing"
)

var (
	events = Table[[]any]{Columns: []string{"ID", "NAME…", "STATE"}, Cells: func(row []any) []any { return row }, Empty: "none; add one"}
	rows   = [][]any{
		{"c_188abcdefghijklmnopqrstuvwxyz0123456789@group.calendar.google.com", "A name\nthat is rather long and goes on and on", "synced"},
		{"short", "你好", "synced"},
	}
)

func TestATableIsJSONToo(t *testing.T) {
	for _, row := range []struct {
		asJSON bool
		rows   [][]any
		want   string
	}{
		{true, rows[1:], "[[\"short\",\"你好\",\"synced\"]]\n"},
		{true, nil, "[]\n"},
		{false, rows[1:], "ID     NAME  STATE\nshort  你好  synced\n"},
		{false, nil, "none; add one\n"},
	} {
		var out bytes.Buffer
		if err := events.Print(&out, row.asJSON, row.rows); err != nil || out.String() != row.want {
			t.Errorf("Print(%v, %v) = %q, %v, want %q", row.asJSON, row.rows, out.String(), err, row.want)
		}
	}
}

func TestAPageFlowsWhereItsTerminalEnds(t *testing.T) {
	for width, want := range map[int]string{0: "ab  cd  ef\n", 80: "ab  cd  ef\n", 7: "ab  cd\nef\n", 2: "ab\ncd\nef\n"} {
		p := Page{Width: width}
		p.Flow([]Drawn{"ab", "cd", "ef"}, []int{2, 2, 2})
		if got := p.String(); got != want {
			t.Errorf("at %d columns = %q, want %q", width, got, want)
		}
	}
}

func TestATableFitsItsTerminalAndCutsNoID(t *testing.T) {
	const id = "c_188abcdefghijklmnopqrstuvwxyz0123456789@group.calendar.google.com"
	for _, width := range []int{0, 200, 110, 80, 40} {
		got := events.text(rows, width)
		if !strings.Contains(got, id) {
			t.Errorf("at %d columns the id cannot be copied:\n%s", width, got)
		}
		for line := range strings.Lines(got) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); width > 0 && n > width && !strings.HasPrefix(line, "ID ") {
				t.Errorf("at %d columns a line has %d: %s", width, n, line)
			}
		}
	}
	if got := events.text(rows, 0); !strings.Contains(got, "A name that is rather long and goes on and on") {
		t.Errorf("elsewhere than on a terminal something was cut:\n%s", got)
	}
	if got := events.text(rows, 110); !strings.Contains(got, "…") || strings.Count(got, "\n") != 3 {
		t.Errorf("at 110 columns the name should be cut, once a line:\n%s", got)
	}
	if got, want := events.text(rows, 80), "ID     short\nNAME   你好\nSTATE  synced\n"; !strings.HasSuffix(got, "\n\n"+want) {
		t.Errorf("at 80 columns = %s, want a block %s", got, want)
	}
}

func TestFactsAreWrapped(t *testing.T) {
	var out bytes.Buffer
	f := NewGrid(&out)
	f.Width, f.Indent = 30, "  "
	f.Add("waits for", "%s", "user-minute of gmail until later")
	f.Add("x", "")
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	want := "  waits for  user-minute of\n             gmail until later\n  x\n"
	if out.String() != want {
		t.Errorf("facts = %q, want %q", out.String(), want)
	}
}

func TestAGridIsWrappedWhereItDoesNotFit(t *testing.T) {
	for width, want := range map[int]string{
		0:  "  ab     for x   until then or so\n  abcde  for yy\n",
		80: "  ab     for x   until then or so\n  abcde  for yy\n",
		24: "  ab     for x until then\n         or so\n  abcde  for yy\n",
	} {
		var out bytes.Buffer
		g := NewGrid(&out)
		g.Width, g.Indent = width, "  "
		g.Row("ab", "for x", "until then or so")
		g.Row("abcde", "for yy")
		if err := g.Flush(); err != nil || out.String() != want {
			t.Errorf("at %d columns = %q, %v, want %q", width, out.String(), err, want)
		}
	}
}
