package fakegoogle

import (
	"hash/fnv"
	"strings"
)

// mailboxKey is how accounts are found: addresses differ by more than case.
func mailboxKey(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

// seedOf makes another seed of one for each name, for data that is made up.
func seedOf(seed uint64, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(mailboxKey(name)))
	return h.Sum64() ^ seed
}
