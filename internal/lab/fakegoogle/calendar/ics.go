package calendar

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/emersion/go-ical"
)

// A Problem is something in a file that was not read as it stands.
type Problem struct {
	File  string `json:"file"`
	Cause string `json:"cause"`
}

// icsFile is what was read of one file: its calendars, and what was not.
type icsFile struct {
	calendars []*ical.Component
	problems  []string
}

func (f *icsFile) report(format string, args ...any) {
	f.problems = append(f.problems, fmt.Sprintf(format, args...))
}

// readICS reads the calendars of a file. Where the reader refuses the whole, lines
// that are none are left out first; where it still does, events are read one by
// one. What was left out is reported.
func readICS(text []byte) *icsFile {
	f := &icsFile{}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	var err error
	if f.calendars, err = decodeICS(text); err == nil {
		return f
	}
	lines := unfold(text)
	kept := lines[:0:0]
	for _, line := range lines {
		if err := checkLine(line.text); err != nil {
			f.report("line %d left out: %v", line.number, err)
			continue
		}
		kept = append(kept, line)
	}
	if f.calendars, err = decodeICS(joinLines(kept)); err == nil {
		return f
	}
	f.report("not one whole calendar (%v): its events are read one by one", err)
	f.calendars = nil
	for _, block := range blocks(kept) {
		calendars, err := decodeICS(block.text)
		if err != nil {
			f.report("event at line %d left out: %v", block.number, err)
		}
		f.calendars = append(f.calendars, calendars...)
	}
	return f
}

// decodeICS reads calendars one after the other until the text ends.
func decodeICS(text []byte) (calendars []*ical.Component, err error) {
	defer func() {
		if p := recover(); p != nil {
			calendars, err = nil, fmt.Errorf("the reader broke: %v", p)
		}
	}()
	decoder := ical.NewDecoder(bytes.NewReader(append(bytes.TrimSpace(text), "\r\n"...)))
	for {
		c, err := decoder.Decode()
		if errors.Is(err, io.EOF) && len(calendars) > 0 {
			return calendars, nil
		}
		if err != nil {
			return nil, err
		}
		calendars = append(calendars, c.Component)
	}
}

// An icsLine is a line with those that continue it, or several lines.
type icsLine struct {
	number int
	text   []byte
}

func unfold(text []byte) []icsLine {
	var lines []icsLine
	for i, line := range bytes.Split(text, []byte("\n")) {
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) > 0 && (line[0] == ' ' || line[0] == '\t') && len(lines) > 0 {
			last := &lines[len(lines)-1]
			last.text = append(last.text[:len(last.text):len(last.text)], line[1:]...)
			continue
		}
		if len(bytes.TrimSpace(line)) > 0 {
			lines = append(lines, icsLine{i + 1, line})
		}
	}
	return lines
}

func joinLines(lines []icsLine) []byte {
	var b bytes.Buffer
	for _, line := range lines {
		b.Write(line.text)
		b.WriteString("\r\n")
	}
	return b.Bytes()
}

// checkLine reports what is wrong with a line by itself.
func checkLine(line []byte) error {
	upper := bytes.ToUpper(line)
	if bytes.HasPrefix(upper, []byte("BEGIN:")) || bytes.HasPrefix(upper, []byte("END:")) {
		return nil
	}
	_, err := decodeICS(fmt.Appendf(nil, "BEGIN:VCALENDAR\r\n%s\r\nEND:VCALENDAR\r\n", line))
	return err
}

// blocks cuts out what stands between BEGIN and END of events and time zones, each
// made a calendar of its own.
func blocks(lines []icsLine) []icsLine {
	var all []icsLine
	for i, line := range lines {
		name, ok := strings.CutPrefix(strings.ToUpper(strings.TrimSpace(string(line.text))), "BEGIN:")
		if !ok || name != "VEVENT" && name != "VTIMEZONE" {
			continue
		}
		end := i + 1
		for end < len(lines) && !strings.EqualFold(strings.TrimSpace(string(lines[end].text)), "END:"+name) {
			end++
		}
		inside := joinLines(lines[i:min(end+1, len(lines))])
		all = append(all, icsLine{line.number, fmt.Appendf(nil, "BEGIN:VCALENDAR\r\n%sEND:VCALENDAR\r\n", inside)})
	}
	return all
}
