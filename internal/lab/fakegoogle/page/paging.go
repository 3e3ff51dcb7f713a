package page

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
)

// A Place is where an item stands in a list: by what orders the list, and within
// that. A page token names the place after which the next page begins, and not a
// number of items, so changes between two pages neither repeat nor lose others.
type Place struct {
	Position int64
	Within   uint32
}

// Tokens says which page tokens are taken. The lock of whoever owns the lists
// guards it. The zero value takes all tokens that it gave.
type Tokens struct {
	Generation uint32        // older tokens are refused
	Life       time.Duration // how long a token is taken; for ever if zero
	Uses       int           // how often; any number of times if zero

	used map[string]int // kept only where Uses limits it
	salt int64          // of the last token that had one, in ns since 1970
}

// Limit changes how long and how often tokens are taken. Tokens that are out have
// no life to measure, and are refused where one is set.
func (t *Tokens) Limit(life time.Duration, uses int) {
	t.Life, t.Uses, t.used = life, uses, map[string]int{}
}

// A Question asks for a page of a list. Its tokens fit no other.
type Question struct {
	List     string // names the list among all others
	Tokens   *Tokens
	Encoding *base64.Encoding // how the API writes tokens
	Params   url.Values       // that tokens are bound to
	Limit    int              // items of a page
	First    Place            // where the list begins
	AsOf     int64            // revision of the list, which tokens keep
}

// A Pager makes one page of a list.
type Pager struct {
	Limit int   // items
	After Place // where the page begins
	AsOf  int64 // revision of the list when its first page was asked for

	question Question
	quirk    fault.Quirk
	binding  uint64
	token    string // that was asked with; "" for the first page
}

// Ask reads the page token of a request. It reports whether the token is one of
// the question, and still taken.
func (q Request) Ask(of Question) (*Pager, bool) {
	p := &Pager{
		Limit: of.Limit, After: of.First, AsOf: of.AsOf, question: of, quirk: q.Quirk, token: q.Get("pageToken"),
		binding: Bind(of.Params, of.List, strconv.FormatUint(uint64(of.Tokens.Generation), 10)),
	}
	if q.Quirk.PageItems > 0 {
		p.Limit = min(p.Limit, q.Quirk.PageItems)
	}
	return p, p.token == "" || p.take()
}

// Bind returns a number that only the same parameters, in any order, and the same
// other words have.
func Bind(params url.Values, others ...string) uint64 {
	h := fnv.New64a()
	write := func(s string) { h.Write([]byte(strconv.Itoa(len(s)) + ":" + s)) }
	for _, s := range others {
		write(s)
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		write(name)
		for _, v := range slices.Sorted(slices.Values(params[name])) {
			write(v)
		}
	}
	return h.Sum64()
}

// tokenBytes are those of a page token before the parameters of its question.
const tokenBytes = 8 + 8 + 4 + 8 + 8

// take reads the token that was asked with.
func (p *Pager) take() bool {
	b, err := p.question.Encoding.DecodeString(p.token)
	if err != nil || len(b) < tokenBytes || binary.BigEndian.Uint64(b) != p.binding {
		return false
	}
	p.After = Place{Position: int64(binary.BigEndian.Uint64(b[8:])), Within: binary.BigEndian.Uint32(b[16:])}
	p.AsOf = int64(binary.BigEndian.Uint64(b[20:]))
	t := p.question.Tokens
	if made := time.Unix(0, int64(binary.BigEndian.Uint64(b[28:]))); t.Life > 0 && time.Since(made) >= t.Life {
		return false
	}
	if t.Uses > 0 {
		t.used[p.token]++
		return t.used[p.token] <= t.Uses
	}
	return true
}

// give writes a token of the page that begins after a place. A fresh one differs
// from all others, as do those that are not taken for ever.
func (p *Pager) give(after Place, fresh bool) string { return p.write(after, p.binding, fresh) }

func (p *Pager) write(after Place, binding uint64, fresh bool) string {
	t, salt := p.question.Tokens, int64(0)
	if fresh || t.Life > 0 || t.Uses > 0 {
		t.salt = max(t.salt+1, time.Now().UnixNano())
		salt = t.salt
	}
	b := binary.BigEndian.AppendUint64(nil, binding)
	b = binary.BigEndian.AppendUint64(b, uint64(after.Position))
	b = binary.BigEndian.AppendUint32(b, after.Within)
	b = binary.BigEndian.AppendUint64(b, uint64(p.AsOf))
	b = binary.BigEndian.AppendUint64(b, uint64(salt))
	b = append(b, p.question.Params.Encode()...)
	return p.question.Encoding.EncodeToString(b)
}

// WithFirst adds the parameters of the first page that a request for a later one
// leaves out. Others than the first page had stay as they are: the token is then
// one of another question.
func (q Request) WithFirst(encoding *base64.Encoding) Request {
	b, err := encoding.DecodeString(q.Get("pageToken"))
	if err != nil || len(b) < tokenBytes {
		return q
	}
	first, err := url.ParseQuery(string(b[tokenBytes:]))
	if err != nil {
		return q
	}
	filled := maps.Clone(q.Values)
	for name, values := range first {
		if !q.Has(name) {
			filled[name] = values
		}
	}
	q.Values = filled
	return q
}

// Cut ends a page: of items, at places, it returns those that the page names and
// the token of the next one, both with the quirks that a fault asks for. more says
// that others follow.
func Cut[T any](p *Pager, items []T, places []Place, more bool) ([]T, string) {
	next := ""
	if more {
		next = p.give(places[len(places)-1], false)
	}
	switch p.quirk.Page {
	case fault.PageEmpty, fault.PageBare:
		items, next = nil, p.give(p.After, true)
	case fault.PageTwice:
		if len(items) > 0 {
			items = append(items, items[0])
		}
	case fault.PageOverlap:
		if more && len(places) > 1 {
			next = p.give(places[len(places)-2], false)
		}
	}
	switch p.quirk.NextPage {
	case fault.NextSame:
		if next = p.token; next == "" {
			next = p.give(p.question.First, false)
		}
	case fault.NextFirst:
		next = p.give(p.question.First, false)
	case fault.NextFresh:
		next = p.give(p.question.First, true)
	case fault.NextDead:
		next = p.write(p.After, p.binding+1, false)
	case fault.NextNone:
		next = ""
	}
	return items, next
}
