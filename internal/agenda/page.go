package agenda

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
)

// A Page is a part of what takes place within a span, and the place of the next: a
// cursor, or "" where this is the last.
type Page struct {
	Occurrences []Occurrence
	Next        string
	Problems    []Problem // of what was looked at
}

// A cursor is the place after so many occurrences that begin at a moment.
type cursor struct {
	start time.Time
	after int
}

// ErrCursor says that a cursor is not the next of an earlier page.
var ErrCursor = errors.New("cursor: not the next of an earlier answer")

func readCursor(text string) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	start, after, _ := strings.Cut(text, "~")
	c.start, err = time.Parse(time.RFC3339, start)
	if err == nil {
		c.after, err = strconv.Atoi(after)
	}
	if err != nil || c.after < 1 {
		return c, ErrCursor
	}
	return c, nil
}

func (c cursor) String() string {
	return c.start.UTC().Format(time.RFC3339) + "~" + strconv.Itoa(c.after)
}

// Page lists up to limit occurrences within a span, after the place of a cursor. The
// error is [ErrCursor] or that of ctx.
func (a *Agenda) Page(ctx context.Context, span Span, after string, limit int) (Page, error) {
	at, err := readCursor(after)
	if err != nil {
		return Page{}, err
	}
	var p Page
	skip := at.after
	p.Problems, err = a.Walk(ctx, span, at.start, func(o Occurrence) bool {
		start := o.Start.in(a.zone)
		if start.Equal(at.start) && skip > 0 {
			skip--
			return true
		}
		if len(p.Occurrences) == limit {
			p.Next = at.String()
			return false
		}
		if !start.Equal(at.start) {
			at = cursor{start: start}
		}
		at.after++
		p.Occurrences = append(p.Occurrences, o)
		return true
	})
	return p, err
}
