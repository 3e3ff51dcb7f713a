package calendar

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

// freeParams are the parameters that page tokens are not bound to: how an answer
// is written, who pays for it, and the token itself.
var freeParams = []string{"pageToken", "fields", "alt", "prettyPrint", "quotaUser", "key", "access_token", "userIp"}

// bindParams returns a number that only the same question has: all parameters
// but those left out.
func bindParams(q url.Values, leaveOut []string, of ...string) uint64 {
	h := fnv.New64a()
	write := func(s string) { h.Write([]byte(strconv.Itoa(len(s)) + ":" + s)) }
	for _, s := range of {
		write(s)
	}
	var names []string
	for name := range q {
		if !slices.Contains(leaveOut, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		values := slices.Clone(q[name])
		slices.Sort(values)
		write(name)
		for _, v := range values {
			write(v)
		}
	}
	return h.Sum64()
}

// A place is where an item stands in a list: by the change or the making of what
// it comes from, and within that.
type place struct {
	position int64
	within   int32
}

func (p place) compare(q place) int {
	if p.position != q.position {
		return int(max(-1, min(1, p.position-q.position)))
	}
	return int(max(-1, min(1, int64(p.within)-int64(q.within))))
}

// A pager is one question for a page of a list of Calendar's.
type pager struct {
	tokens  *tokenState
	odd     fault.Quirk
	params  url.Values // of the question, without those that are free
	binding uint64
	limit   int
	token   string // that was asked with
	after   place
	asOf    int64 // revision of the list when its first page was asked for
}

// The page tokens of Calendar are these bytes and the parameters of the first
// page, in base64 with padding, which must be escaped to travel in a query.
const pageTokenBytes = 8 + 8 + 4 + 8 + 8

// withFirstParams adds the parameters of the first page that a request for a later
// one leaves out. Others than the first page had stay as they are: the token is
// then one of another question.
func withFirstParams(q page.Request) page.Request {
	b, err := base64.URLEncoding.DecodeString(q.Get("pageToken"))
	if err != nil || len(b) < pageTokenBytes {
		return q
	}
	q.Values = page.FillIn(q.Values, string(b[pageTokenBytes:]))
	return q
}

// newPager reads maxResults and pageToken of a request that has the
// parameters of its first page; see [withFirstParams]. list names the list in all the
// world; rev is its revision. The caller holds the lock.
func newPager(tokens *tokenState, list string, rev int64, q page.Request, standard, largest int) (*pager, *wire.Error) {
	limit, bad := maxResults(q, standard, largest)
	if bad != nil {
		return nil, bad
	}
	if q.Quirk.PageItems > 0 {
		limit = min(limit, q.Quirk.PageItems)
	}
	params := maps.Clone(q.Values)
	maps.DeleteFunc(params, func(name string, _ []string) bool { return slices.Contains(freeParams, name) })
	p := &pager{
		tokens: tokens, odd: q.Quirk, limit: limit, token: q.Get("pageToken"), asOf: rev, params: params,
		binding: bindParams(q.Values, freeParams, list, strconv.FormatUint(uint64(tokens.pages), 10)),
	}
	if p.token != "" && !p.take() {
		return nil, badRequest("invalid", "Invalid page token value.", "pageToken") // unverified
	}
	return p, nil
}

// maxResults reads the page size; more than the largest is taken for that.
func maxResults(q page.Request, standard, largest int) (int, *wire.Error) {
	text := q.Get("maxResults")
	if text == "" {
		return standard, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return 0, badRequest("invalidParameter", fmt.Sprintf("Invalid integer value: '%s'.", text), "maxResults")
	}
	return int(min(n, int64(largest))), nil
}

// take reads the page token that was asked with, unless it is of another question.
func (p *pager) take() bool {
	b, err := base64.URLEncoding.DecodeString(p.token)
	if err != nil || len(b) < pageTokenBytes || binary.BigEndian.Uint64(b) != p.binding {
		return false
	}
	p.after = place{position: int64(binary.BigEndian.Uint64(b[8:])), within: int32(binary.BigEndian.Uint32(b[16:]))}
	p.asOf = int64(binary.BigEndian.Uint64(b[20:]))
	return true
}

// give writes a page token; a fresh one differs from all others.
func (p *pager) give(after place, binding uint64, fresh bool) string {
	salt := int64(0)
	if fresh {
		p.tokens.lastSalt = max(p.tokens.lastSalt+1, time.Now().UnixNano())
		salt = p.tokens.lastSalt
	}
	b := binary.BigEndian.AppendUint64(nil, binding)
	b = binary.BigEndian.AppendUint64(b, uint64(after.position))
	b = binary.BigEndian.AppendUint32(b, uint32(after.within))
	b = binary.BigEndian.AppendUint64(b, uint64(p.asOf))
	b = binary.BigEndian.AppendUint64(b, uint64(salt))
	b = append(b, p.params.Encode()...)
	return base64.URLEncoding.EncodeToString(b)
}

// A placed item knows where it stands.
type placed[T any] struct {
	place
	item T
}

// pageOf cuts the page out of a whole list in order, with the token of the next
// one. last says that nothing follows, so that a sync token may.
func pageOf[T any](p *pager, all []placed[T]) (items []T, next string, last bool) {
	start, _ := slices.BinarySearchFunc(all, p.after, func(i placed[T], after place) int {
		if i.compare(after) <= 0 {
			return -1
		}
		return 1
	})
	page := all[start:]
	more := len(page) > p.limit
	page = page[:min(len(page), p.limit)]
	for _, i := range page {
		items = append(items, i.item)
	}
	if more {
		next = p.give(page[len(page)-1].place, p.binding, false)
	}
	items, next = oddPage(p, page, items, next)
	return items, next, next == "" && !more
}

// oddPage makes a page odd as a fault asks for.
func oddPage[T any](p *pager, page []placed[T], items []T, next string) ([]T, string) {
	switch p.odd.Page {
	case fault.PageEmpty, fault.PageBare:
		items, next = nil, p.give(p.after, p.binding, true)
	case fault.PageTwice:
		if len(items) > 0 {
			items = append(items, items[0])
		}
	case fault.PageOverlap:
		if next != "" && len(page) > 1 {
			next = p.give(page[len(page)-2].place, p.binding, false)
		}
	}
	switch p.odd.NextPage {
	case fault.NextSame:
		if next = p.token; next == "" {
			next = p.give(place{}, p.binding, false)
		}
	case fault.NextFirst:
		next = p.give(place{}, p.binding, false)
	case fault.NextFresh:
		next = p.give(place{}, p.binding, true)
	case fault.NextDead:
		next = p.give(p.after, p.binding+1, false)
	case fault.NextNone:
		next = ""
	}
	return items, next
}

// A syncToken says which state of a list its owner knows, and by which question.
type syncToken struct {
	list       uint64 // whose list
	generation uint32
	binding    uint64 // the parameters that may not change
	rev        int64
}

func (t syncToken) encode() string {
	b := binary.BigEndian.AppendUint64(nil, t.list)
	b = binary.BigEndian.AppendUint32(b, t.generation)
	b = binary.BigEndian.AppendUint64(b, t.binding)
	b = binary.BigEndian.AppendUint64(b, uint64(t.rev))
	return base64.URLEncoding.EncodeToString(b)
}

// takeSyncToken reads a sync token of a list: 400 where it is none or the
// question is another one now, 410 where it has expired.
func takeSyncToken(text string, want syncToken, state *tokenState) (rev int64, bad *wire.Error) {
	b, err := base64.URLEncoding.DecodeString(text)
	if err != nil || len(b) != 28 || binary.BigEndian.Uint64(b) != want.list {
		return 0, badRequest("invalid", "Invalid sync token value.", "syncToken") // unverified
	}
	if state.expired || binary.BigEndian.Uint32(b[8:]) != want.generation {
		e, _ := wire.NamedError("fullSyncRequired")
		return 0, e
	}
	if binary.BigEndian.Uint64(b[12:]) != want.binding {
		return 0, badRequest("badRequest", "Sync token cannot be used with other query parameters than those of the initial request.", "syncToken") // unverified
	}
	return int64(binary.BigEndian.Uint64(b[20:])), nil
}

// forbidParams refuses parameters that must not come with a sync token.
func forbidParams(q page.Request, names ...string) *wire.Error {
	for _, name := range names {
		if q.Has(name) {
			return badRequest("badRequest", "Sync token cannot be used with the parameter "+name+".", name) // unverified
		}
	}
	return nil
}

// forbidFalse refuses that what a sync token must tell of is left out.
func forbidFalse(q page.Request, names ...string) *wire.Error {
	for _, name := range names {
		if q.Has(name) && (q.Get(name) == "false" || q.Get(name) == "0") {
			return badRequest("badRequest", "Sync token cannot be used with "+name+"=false.", name) // unverified
		}
	}
	return nil
}

// gone is the answer to a call whose answer cannot be made up any more.
func gone(reason string) *wire.Error {
	if e, ok := wire.NamedError(reason); ok {
		return e
	}
	return wire.NewError(http.StatusGone, "global", reason, reason)
}
