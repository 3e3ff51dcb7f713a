package wire

import (
	"hash/fnv"
	"strings"
)

// AddressKey is how accounts are found: addresses differ by more than case.
func AddressKey(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

// SeedOf makes another seed of one for each name, for data that is made up.
func SeedOf(seed uint64, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(AddressKey(name)))
	return h.Sum64() ^ seed
}
