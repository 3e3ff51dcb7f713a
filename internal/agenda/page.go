package agenda

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
)

// A Page is a part of the occurrences within a span, and the cursor of the next page,
// which is empty for the last.
type Page struct {
	Occurrences []Occurrence
	Next        string
	Problems    []Problem // of the events that this page needed
}

// A cursor is the position after n occurrences that begin at a moment.
type cursor struct {
	start time.Time
	after int
}

// ErrCursor reports that a cursor is not one that an earlier page returned.
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

// Page lists up to limit occurrences within a span, after a cursor. The error is
// [ErrCursor] or that of ctx.
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
