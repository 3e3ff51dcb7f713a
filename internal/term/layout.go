package term

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

const (
	gap      = "  " // between two columns
	leastCut = 16   // columns that a cut text keeps
)

// widthsOf are the widths of the columns of rows.
func widthsOf(rows [][]string, columns int) []int {
	widths := make([]int, columns)
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], runewidth.StringWidth(cell))
		}
	}
	return widths
}

// over is the number of columns by which a row of such widths is too wide for a terminal.
func over(widths []int, indent string, width int) int {
	n := len(indent) - width - len(gap)
	for _, w := range widths {
		n += w + len(gap)
	}
	if width == 0 {
		return 0
	}
	return n
}

// writeRow writes cells side by side, without blanks at the end of the line.
func writeRow(b *strings.Builder, indent string, row []string, widths []int) {
	line := indent
	for i, cell := range row {
		cell = Cut(cell, widths[i])
		line += pad(cell, widths[i]) + gap
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}

// writeWrapped writes a name and a text beside it, wrapped to the terminal's width.
func writeWrapped(b *strings.Builder, name string, column int, text string, width int) {
	lines := []string{text}
	if width > 0 {
		lines = Wrap(text, max(leastCut, width-column-len(gap)))
	}
	for i, line := range lines {
		if i > 0 {
			name = ""
		}
		b.WriteString(strings.TrimRight(pad(name, column)+gap+line, " ") + "\n")
	}
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-runewidth.StringWidth(text)))
}

// Cut shortens a text to at most width columns.
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
