package term

import (
	"fmt"
	"io"
	"strings"
)

// A Grid is aligned rows without a header, such as names and values. If it does not fit
// a terminal, the text beside the first cells is wrapped.
type Grid struct {
	Width  int    // of the terminal; 0: no bound
	Indent string // before each row
	out    io.Writer
	rows   [][]string
}

// NewGrid returns an empty grid that Flush writes to out.
func NewGrid(out io.Writer) *Grid { return &Grid{out: out, Width: Width(out)} }

// Row adds a row, each cell as fmt.Sprint prints it, cleaned.
func (g *Grid) Row(cells ...any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = Clean(fmt.Sprint(cell))
	}
	g.rows = append(g.rows, row)
}

// Add adds a row of a name and a formatted text.
func (g *Grid) Add(name, format string, args ...any) { g.Row(name, fmt.Sprintf(format, args...)) }

// Flush writes the rows and removes them.
func (g *Grid) Flush() error {
	columns := 0
	for _, row := range g.rows {
		columns = max(columns, len(row))
	}
	widths := widthsOf(g.rows, columns)
	fits := over(widths, g.Indent, g.Width) <= 0
	var b strings.Builder
	for _, row := range g.rows {
		if fits {
			writeRow(&b, g.Indent, row, widths)
			continue
		}
		rest := strings.TrimSpace(strings.Join(row[1:], " "))
		writeWrapped(&b, g.Indent+row[0], len(g.Indent)+widths[0], rest, g.Width)
	}
	g.rows = nil
	_, err := io.WriteString(g.out, b.String())
	return err
}
