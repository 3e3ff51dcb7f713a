package fakegoogle

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"net/url"
	"slices"
	"strconv"
)

const (
	defaultPage = 100
	largestPage = 500
)

// maxResults reads the page size. Like Google, it takes more than 500 for 500.
func maxResults(q url.Values) (int, *apiError) {
	text := q.Get("maxResults")
	if text == "" {
		return defaultPage, nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, badRequest("Invalid value at 'max_results' (TYPE_UINT32), \"" + text + "\"")
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

// bind returns a number that only the same question about the same mailbox,
// asked since page tokens last expired, has. The size of the page is no part of
// the question. The caller holds the mailbox's lock.
func (m *Mailbox) bind(list string, q url.Values, params ...string) uint64 {
	h := fnv.New64a()
	write := func(s string) {
		h.Write([]byte(strconv.Itoa(len(s)) + ":" + s))
	}
	write(m.email)
	write(list)
	write(strconv.FormatUint(uint64(m.tokens), 10))
	for _, param := range params {
		values := slices.Clone(q[param])
		slices.Sort(values)
		write(param)
		for _, v := range values {
			write(v)
		}
	}
	return h.Sum64()
}

func (t pageToken) encode(binding uint64) string {
	var b []byte
	b = binary.BigEndian.AppendUint64(b, binding)
	b = binary.BigEndian.AppendUint64(b, uint64(t.position))
	b = binary.BigEndian.AppendUint32(b, t.sequence)
	return base64.RawURLEncoding.EncodeToString(b)
}

func parsePageToken(token string, binding uint64) (pageToken, bool) {
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(b) != 20 || binary.BigEndian.Uint64(b) != binding {
		return pageToken{}, false
	}
	return pageToken{position: int64(binary.BigEndian.Uint64(b[8:])), sequence: binary.BigEndian.Uint32(b[16:])}, true
}
