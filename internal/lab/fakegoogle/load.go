package fakegoogle

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
)

// generatePrefix begins a spec that makes mail up.
const generatePrefix = "generate:"

// Load fills the mailbox of email, making it if need be. spec is generate:N, for
// N made-up messages that depend on Options.Seed and the address, or
// generate:N:SIZE for N large ones of SIZE bytes each (35MB; see
// [Mailbox.AddLarge]), or the path of an mbox file, an eml file or a folder of them (see [ReadMailbox]). Nothing is
// added when there is an error.
func (s *Server) Load(email, spec string) error {
	if at := strings.LastIndex(email, "@"); at < 1 || at == len(email)-1 {
		return fmt.Errorf("load mailbox %q: an address such as ann@example.com is needed", email)
	}
	if count, ok := strings.CutPrefix(spec, generatePrefix); ok {
		count, size, sized := strings.Cut(count, ":")
		n, err := strconv.Atoi(count)
		if err != nil || n < 0 {
			return fmt.Errorf("load mailbox %s: %q is not generate:N or generate:N:SIZE with a number N", email, spec)
		}
		if sized {
			return s.loadLarge(email, n, size)
		}
		seed := seedOf(s.opts.Seed, email)
		labels := rand.New(rand.NewPCG(seed, 1))
		box := s.AddMailbox(email)
		for raw := range Generate(seed, n) {
			box.Add(raw, madeUpLabels(labels)...)
		}
		return nil
	}
	messages, err := ReadMailbox(spec)
	if err != nil {
		return fmt.Errorf("load mailbox %s: %w", email, err)
	}
	box := s.AddMailbox(email)
	for _, raw := range messages {
		box.Add(raw)
	}
	return nil
}

// loadLarge adds n messages of a size such as 36700160, 500KB or 35MB.
func (s *Server) loadLarge(email string, n int, size string) error {
	number, unit := size, 1
	for name, bytes := range map[string]int{"KB": 1_000, "MB": 1_000_000} {
		if cut, ok := strings.CutSuffix(size, name); ok {
			number, unit = cut, bytes
		}
	}
	bytes, err := strconv.ParseInt(number, 10, 32)
	if err != nil || int(bytes)*unit < SmallestLarge || int(bytes)*unit > mostMade {
		return fmt.Errorf("load mailbox %s: size %q is not one from %d bytes to 1 GB, such as 35MB", email, size, SmallestLarge)
	}
	box := s.AddMailbox(email)
	for range n {
		box.AddLarge(int(bytes) * unit)
	}
	return nil
}

func seedOf(seed uint64, email string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(mailboxKey(email)))
	return h.Sum64() ^ seed
}

// madeUpLabels are such as people have. None of them hides a message from an
// ordinary listing.
func madeUpLabels(r *rand.Rand) []string {
	if r.IntN(6) == 0 {
		return []string{"SENT"}
	}
	labels := []string{"CATEGORY_PERSONAL"}
	if r.IntN(3) == 0 {
		labels = []string{"CATEGORY_UPDATES"}
	}
	for _, l := range []struct {
		name string
		in   int
	}{{"INBOX", 2}, {"UNREAD", 5}, {"IMPORTANT", 4}, {"STARRED", 20}, {"Label_1", 8}, {"Projects/Alpha", 12}} {
		if r.IntN(l.in) == 0 {
			labels = append(labels, l.name)
		}
	}
	return labels
}
