package term

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Table describes how rows of T are printed: as cells below a header for people, and
// as one JSON array of the rows themselves.
//
// A table is never wider than its terminal: long texts are cut, and if that is not
// enough, each row becomes a block with a line for each cell. Cells that are no text,
// such as ids, are never cut. Output that goes to a file or a pipe has no width.
type Table[T any] struct {
	Columns []string      // headers; an ellipsis at the end marks a text that may be cut
	Cells   func(T) []any // of a row; printed as fmt.Sprint does, and cleaned
	Empty   string        // printed instead of a table without rows: what to do next
}

// Print writes rows to out, as JSON or for people.
func (t Table[T]) Print(out io.Writer, asJSON bool, rows []T) error {
	if asJSON {
		return WriteJSON(out, append([]T{}, rows...))
	}
	_, err := io.WriteString(out, t.text(rows, Width(out)))
	return err
}

// text renders the table for a terminal of a width; 0 is any width.
func (t Table[T]) text(rows []T, width int) string {
	if len(rows) == 0 && t.Empty != "" {
		return Clean(t.Empty) + "\n"
	}
	names := make([]string, len(t.Columns))
	for i, name := range t.Columns {
		names[i] = strings.TrimSuffix(name, "…")
	}
	lines := [][]string{names}
	for _, row := range rows {
		cells := make([]string, len(t.Columns))
		for i, cell := range t.Cells(row) {
			cells[i] = Clean(fmt.Sprint(cell))
		}
		lines = append(lines, cells)
	}
	widths := widthsOf(lines, len(names))
	var b strings.Builder
	if t.fit(widths, width) {
		for _, line := range lines {
			writeRow(&b, "", line, widths)
		}
		return b.String()
	}
	label := widthsOf([][]string{names}, len(names))
	for i, line := range lines[1:] {
		if i > 0 {
			b.WriteByte('\n')
		}
		for k, cell := range line {
			writeWrapped(&b, names[k], slices.Max(label), cell, width)
		}
	}
	return b.String()
}

// fit makes columns of text narrower until the table fits, and reports whether it does.
func (t Table[T]) fit(widths []int, width int) bool {
	for more := over(widths, "", width); more > 0; more-- {
		widest := -1
		for i, name := range t.Columns {
			name, text := strings.CutSuffix(name, "…")
			if text && widths[i] > max(leastCut, len(name)) && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
	}
	return true
}
