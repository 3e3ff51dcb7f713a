package gmail

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

const (
	defaultPage = 100
	largestPage = 500
)

// maxResults reads the page size. Like Google, it takes more than 500 for 500.
func maxResults(q page.Request) (int, *wire.Error) {
	text := q.Get("maxResults")
	if text == "" {
		return defaultPage, nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, wire.BadRequest("Invalid value at 'max_results' (TYPE_UINT32), \"" + text + "\"")
	}
	if n == 0 {
		return defaultPage, nil
	}
	return int(min(n, largestPage)), nil
}

// A pageToken says after which item the next page begins. It names the item, not
// its place, so changes between two pages neither repeat nor lose others.
type pageToken struct {
	position int64  // internal date, or history id
	sequence uint32 // of the message; 0 for history
}

// A pager is one question for a page of a list.
type pager struct {
	box     *Mailbox
	odd     fault.Quirk
	params  url.Values // that tokens are bound to
	binding uint64
	limit   int       // items
	token   string    // that was asked with; "" for the first page
	first   pageToken // where the list begins
	after   pageToken // where this page does
}

// newPager reads the parameters that every list has. first is where the list
// begins, and params are those that its tokens are bound to. The caller holds the
// mailbox's write lock.
func (m *Mailbox) newPager(list string, q page.Request, first pageToken, params ...string) (*pager, *wire.Error) {
	limit, bad := maxResults(q)
	if bad != nil {
		return nil, bad
	}
	if q.Quirk.PageItems > 0 {
		limit = min(limit, q.Quirk.PageItems)
	}
	bound := maps.Clone(q.Values)
	maps.DeleteFunc(bound, func(name string, _ []string) bool { return !slices.Contains(params, name) })
	p := &pager{
		box: m, odd: q.Quirk, params: bound, binding: m.bind(list, q, params...), limit: limit,
		token: q.Get("pageToken"), first: first, after: first,
	}
	if p.token != "" {
		after, ok := m.takeToken(p.token, p.binding)
		if !ok {
			return nil, wire.BadRequest("Invalid pageToken")
		}
		p.after = after
	}
	return p, nil
}

// takeToken reads a page token, unless it is not of this question or has been
// out too long or used too often.
func (m *Mailbox) takeToken(token string, binding uint64) (pageToken, bool) {
	t, made, ok := parsePageToken(token, binding)
	if !ok {
		return pageToken{}, false
	}
	if life := time.Duration(m.profile.PageTokenLifeMS) * time.Millisecond; life > 0 && time.Since(made) >= life {
		return pageToken{}, false
	}
	if m.profile.PageTokenUses > 0 {
		m.tokenUses[token]++
		return t, m.tokenUses[token] <= m.profile.PageTokenUses
	}
	return t, true
}

// giveToken writes a page token; one that lives for a time, or for a number of
// uses, differs from all others. The caller holds the write lock.
func (p *pager) giveToken(t pageToken, fresh bool) string {
	h := p.box.profile
	if !fresh && h.PageTokenLifeMS == 0 && h.PageTokenUses == 0 {
		return t.encode(p.binding, 0, p.params)
	}
	p.box.lastSalt = max(p.box.lastSalt+1, time.Now().UnixNano())
	return t.encode(p.binding, p.box.lastSalt, p.params)
}

// cutPage ends a page: of items, at places, it returns those that the page names
// and the token of the next one. more says that others follow.
func cutPage[T any](p *pager, items []T, places []pageToken, more bool) ([]T, string) {
	next := ""
	if more {
		next = p.giveToken(places[len(places)-1], false)
	}
	switch p.odd.Page {
	case fault.PageEmpty, fault.PageBare:
		items, next = nil, p.giveToken(p.after, true)
	case fault.PageTwice:
		if len(items) > 0 {
			items = append(items, items[0])
		}
	case fault.PageOverlap:
		if more && len(places) > 1 {
			next = p.giveToken(places[len(places)-2], false)
		}
	}
	switch p.odd.NextPage {
	case fault.NextSame:
		if next = p.token; next == "" {
			next = p.giveToken(p.first, false)
		}
	case fault.NextFirst:
		next = p.giveToken(p.first, false)
	case fault.NextFresh:
		next = p.giveToken(p.first, true)
	case fault.NextDead:
		next = p.after.encode(p.binding+1, 0, p.params)
	case fault.NextNone:
		next = ""
	}
	return items, next
}

// estimate is what a page says of the list's size: nothing where it is bare.
func (p *pager) estimate(items int, next string) *int {
	switch {
	case p.odd.Estimate != nil:
		return p.odd.Estimate
	case p.odd.Page == fault.PageBare:
		return nil
	case next != "":
		items = sizeEstimate
	}
	return &items
}

// bind returns a number that only the same question about the same mailbox,
// asked since page tokens last expired, has. The size of the page is no part of
// the question. The caller holds the mailbox's lock.
func (m *Mailbox) bind(list string, q page.Request, params ...string) uint64 {
	h := fnv.New64a()
	write := func(s string) {
		h.Write([]byte(strconv.Itoa(len(s)) + ":" + s))
	}
	write(m.email)
	write(list)
	write(strconv.FormatUint(uint64(m.tokens), 10))
	for _, param := range params {
		values := slices.Clone(q.Values[param])
		slices.Sort(values)
		write(param)
		for _, v := range values {
			write(v)
		}
	}
	return h.Sum64()
}

// gmailTokenBytes are those before the parameters of the first page in a token.
const gmailTokenBytes = 8 + 8 + 4 + 8

// withFirstMailParams is [withFirstParams] for Gmail.
func withFirstMailParams(q page.Request) page.Request {
	b, err := base64.RawURLEncoding.DecodeString(q.Get("pageToken"))
	if err != nil || len(b) < gmailTokenBytes {
		return q
	}
	q.Values = page.FillIn(q.Values, string(b[gmailTokenBytes:]))
	return q
}

// encode writes a token: the question that it belongs to, its place, the moment
// that it was made at as salt, or 0, and the parameters of the question.
func (t pageToken) encode(binding uint64, made int64, params url.Values) string {
	var b []byte
	b = binary.BigEndian.AppendUint64(b, binding)
	b = binary.BigEndian.AppendUint64(b, uint64(t.position))
	b = binary.BigEndian.AppendUint32(b, t.sequence)
	b = binary.BigEndian.AppendUint64(b, uint64(made))
	b = append(b, params.Encode()...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// parsePageToken reads a token and when it was made, which is long ago for one
// without salt.
func parsePageToken(token string, binding uint64) (t pageToken, made time.Time, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(b) < gmailTokenBytes || binary.BigEndian.Uint64(b) != binding {
		return pageToken{}, time.Time{}, false
	}
	if salt := int64(binary.BigEndian.Uint64(b[20:])); salt != 0 {
		made = time.Unix(0, salt)
	}
	return pageToken{position: int64(binary.BigEndian.Uint64(b[8:])), sequence: binary.BigEndian.Uint32(b[16:])}, made, true
}
