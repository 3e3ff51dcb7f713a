package term

import (
	"fmt"
	"io"
	"strings"

	"github.com/mattn/go-runewidth"
)

const (
	gap      = "  " // between two columns
	leastCut = 16   // columns that a cut text keeps
)

// A Table is rows of cells below a header. On a terminal it is never wider than
// that: long texts are cut, and if that does not help, each row becomes a block with
// a line for each cell. Cells that are no text, such as ids, are never cut. Elsewhere
// nothing is.
type Table struct {
	Width   int    // of the terminal; 0: no bound
	Indent  string // before each row
	out     io.Writer
	columns []column
	rows    [][]string
}

type column struct {
	name string
	text bool // it may be cut
}

// NewTable returns a table with columns of the given names. A name that ends in an
// ellipsis is of a text that may be cut.
func NewTable(out io.Writer, names ...string) *Table {
	t := &Table{out: out, Width: Width(out)}
	for _, name := range names {
		short, text := strings.CutSuffix(name, "…")
		t.columns = append(t.columns, column{short, text})
	}
	return t
}

// NewGrid returns a table without a header, whose rows may have any number of cells up
// to columns. Where it does not fit a terminal, what stands beside the first cells is
// wrapped.
func NewGrid(out io.Writer, columns int) *Table {
	return &Table{out: out, Width: Width(out), columns: make([]column, columns)}
}

// Row adds a row, each cell as fmt.Sprint prints it, cleaned.
func (t *Table) Row(cells ...any) {
	row := make([]string, len(t.columns))
	for i, cell := range cells {
		row[i] = Clean(fmt.Sprint(cell))
	}
	t.rows = append(t.rows, row)
}

// Flush writes the table.
func (t *Table) Flush() error {
	rows := t.rows
	header := make([]string, len(t.columns))
	for i, c := range t.columns {
		header[i] = c.name
	}
	if strings.Join(header, "") != "" {
		rows = append([][]string{header}, rows...)
	}
	widths := widthsOf(rows, len(t.columns))
	var b strings.Builder
	switch fits := t.fit(widths); {
	case fits:
		for _, row := range rows {
			writeRow(&b, t.Indent, row, widths)
		}
	case len(rows) == len(t.rows): // a grid
		for _, row := range rows {
			rest := strings.TrimSpace(strings.Join(row[1:], " "))
			writeWrapped(&b, t.Indent+row[0], len(t.Indent)+widths[0], rest, t.Width)
		}
	default:
		for i, row := range t.rows {
			if i > 0 {
				b.WriteByte('\n')
			}
			t.writeBlock(&b, row)
		}
	}
	_, err := io.WriteString(t.out, b.String())
	t.rows = nil
	return err
}

// fit makes columns of text narrower until the table fits, and reports whether it
// does.
func (t *Table) fit(widths []int) bool {
	over := len(t.Indent) - t.Width - len(gap)
	for _, w := range widths {
		over += w + len(gap)
	}
	for t.Width > 0 && over > 0 {
		widest := -1
		for i, c := range t.columns {
			if c.text && widths[i] > max(leastCut, len(c.name)) && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
		over--
	}
	return true
}

// writeBlock writes a row with a line for each cell.
func (t *Table) writeBlock(b *strings.Builder, row []string) {
	label := 0
	for _, c := range t.columns {
		label = max(label, len(c.name))
	}
	for i, c := range t.columns {
		writeWrapped(b, c.name, label, row[i], t.Width)
	}
}

func widthsOf(rows [][]string, columns int) []int {
	widths := make([]int, columns)
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], runewidth.StringWidth(cell))
		}
	}
	return widths
}

// writeRow writes cells side by side, and none of the blanks that would end the
// line.
func writeRow(b *strings.Builder, indent string, row []string, widths []int) {
	line := indent
	for i, cell := range row {
		cell = Cut(cell, widths[i])
		line += cell + strings.Repeat(" ", widths[i]-runewidth.StringWidth(cell)) + gap
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}

// Facts are lines of a name and what there is to say of it.
type Facts struct {
	out    io.Writer
	Indent string // before each line
	Width  int    // of the terminal; 0: no bound
	rows   [][2]string
}

// NewFacts returns facts without any.
func NewFacts(out io.Writer) *Facts { return &Facts{out: out, Width: Width(out)} }

// Add adds a line; its text is cleaned.
func (f *Facts) Add(name, format string, args ...any) {
	f.rows = append(f.rows, [2]string{Clean(name), Clean(fmt.Sprintf(format, args...))})
}

// Flush writes the lines. On a terminal, long ones go on below their beginning.
func (f *Facts) Flush() error {
	label := 0
	for _, row := range f.rows {
		label = max(label, runewidth.StringWidth(row[0]))
	}
	var b strings.Builder
	for _, row := range f.rows {
		writeWrapped(&b, f.Indent+row[0], len(f.Indent)+label, row[1], f.Width)
	}
	_, err := io.WriteString(f.out, b.String())
	f.rows = nil
	return err
}

// writeWrapped writes a label and a text beside it, wrapped to the terminal's width.
func writeWrapped(b *strings.Builder, name string, label int, text string, width int) {
	lines := []string{text}
	if width > 0 {
		lines = Wrap(text, max(leastCut, width-label-len(gap)))
	}
	for i, line := range lines {
		if i > 0 {
			name = ""
		}
		b.WriteString(strings.TrimRight(name+strings.Repeat(" ", label-runewidth.StringWidth(name))+gap+line, " ") + "\n")
	}
}

// Cut returns a text in at most width columns.
func Cut(text string, width int) string {
	if runewidth.StringWidth(text) <= width {
		return text
	}
	return runewidth.Truncate(text, width, "…")
}

// Wrap breaks a text at spaces into lines of at most width columns. A word that is
// longer, such as an id, stays whole.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Split(text, " ") {
		switch {
		case line == "":
			line = word
		case runewidth.StringWidth(line)+1+runewidth.StringWidth(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
