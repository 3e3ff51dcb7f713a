package api

import (
	"errors"
	"strconv"
)

// Paging is how every list is asked for. It is exported, as huma skips embedded
// types that are not.
type Paging struct {
	Cursor string `query:"cursor" maxLength:"512" doc:"Go on after the page whose next this was."`
	Limit  int    `query:"limit" default:"100" minimum:"1" maximum:"1000" doc:"The most items of the answer."`
}

// skip reads the cursor of a list whose items have no names.
func (p Paging) skip() (int, error) {
	if p.Cursor == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(p.Cursor)
	if err != nil || n < 0 {
		return 0, Invalid(errors.New("cursor: not the next of an earlier answer"))
	}
	return n, nil
}

// Page is a part of a list.
type Page[T any] struct {
	Items []T    `json:"items" nullable:"false"`
	Next  string `json:"next,omitempty" doc:"The cursor of the next page; without one this is the last."`
}

// paged makes a page of what was found, for which one item more than the limit was
// asked.
func paged[T any](p Paging, found []T, id func(T) string) *Body[Page[T]] {
	page := Page[T]{Items: append([]T{}, found...)}
	if len(found) > p.Limit {
		page.Items = page.Items[:p.Limit]
		page.Next = id(page.Items[p.Limit-1])
	}
	return &Body[Page[T]]{page}
}
