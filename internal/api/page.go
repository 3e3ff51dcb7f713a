package api

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// Paging is how every list is asked for. It is exported, as huma skips embedded
// types that are not.
type Paging struct {
	Cursor string `query:"cursor" maxLength:"4096" doc:"Go on after the page whose next this was."`
	Limit  int    `query:"limit" default:"100" minimum:"1" maximum:"1000" doc:"The most items of the answer."`

	list  string // which operation's
	after string // the last item of the page before, from the cursor
}

// Resolve implements [huma.Resolver]. It opens the cursor, and refuses one that this
// list has not made.
func (p *Paging) Resolve(ctx huma.Context) []error {
	p.list = ctx.Operation().OperationID
	after, ok := openCursor(p.list, p.Cursor)
	if !ok {
		return []error{cursorError{}}
	}
	p.after = after
	return nil
}

// A cursorError refuses a cursor.
type cursorError struct{}

func (cursorError) Error() string {
	return "it is not the next of an earlier answer of this list; ask without a cursor for the first page"
}

// GetStatus implements [huma.StatusError].
func (cursorError) GetStatus() int { return http.StatusBadRequest }

// ErrorDetail implements [huma.ErrorDetailer].
func (e cursorError) ErrorDetail() *huma.ErrorDetail {
	return &huma.ErrorDetail{Location: "query.cursor", Message: e.Error()}
}

// sealCursor makes a cursor of a place in a list. Its sum shows a cursor that is of
// another list, cut short or made up.
func sealCursor(list, after string) string {
	sum := crc32.ChecksumIEEE([]byte(list + "\x00" + after))
	return base64.RawURLEncoding.EncodeToString(append(binary.BigEndian.AppendUint32(nil, sum), after...))
}

func openCursor(list, cursor string) (after string, ok bool) {
	if cursor == "" {
		return "", true
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(data) <= 4 {
		return "", false
	}
	after = string(data[4:])
	return after, sealCursor(list, after) == cursor
}

// skip is how many items of a list without names come before the page.
func (p Paging) skip() int {
	n, err := strconv.Atoi(p.after)
	if err != nil {
		return 0 // there is no cursor
	}
	return max(0, n)
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
		page.Next = sealCursor(p.list, id(page.Items[p.Limit-1]))
	}
	return &Body[Page[T]]{page}
}

// pagedOf makes a page of a whole list, which is in the order of its ids.
func pagedOf[T any](p Paging, all []T, id func(T) string) *Body[Page[T]] {
	for len(all) > 0 && id(all[0]) <= p.after {
		all = all[1:]
	}
	return paged(p, all[:min(len(all), p.Limit+1)], id)
}
