package gmail

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"headroom/internal/lab/fakegoogle/wire"
)

// generatePrefix begins a spec that makes mail up.
const generatePrefix = "generate:"

// ReadSpec reads what to fill the mailbox of an address with; see [Server.Load]. It
// returns what fills it.
func ReadSpec(email, spec string, seed uint64) (fill func(*Mailbox), err error) {
	if count, ok := strings.CutPrefix(spec, generatePrefix); ok {
		return generated(email, count, seed)
	}
	messages, err := ReadMailbox(spec)
	if err != nil {
		return nil, fmt.Errorf("load mailbox %s: %w", email, err)
	}
	return func(box *Mailbox) {
		for _, raw := range messages {
			box.Add(raw)
		}
	}, nil
}

// generated reads N or N:SIZE.
func generated(email, spec string, seed uint64) (fill func(*Mailbox), err error) {
	count, size, sized := strings.Cut(spec, ":")
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("load mailbox %s: %q is not generate:N or generate:N:SIZE with a number N", email, generatePrefix+spec)
	}
	if sized {
		return generatedLarge(email, n, size)
	}
	return func(box *Mailbox) {
		seed := wire.SeedOf(seed, email)
		labels := rand.New(rand.NewPCG(seed, 1))
		for raw := range Generate(seed, n) {
			box.Add(raw, madeUpLabels(labels)...)
		}
	}, nil
}

// generatedLarge reads the size of n messages, such as 36700160, 500KB or 35MB.
func generatedLarge(email string, n int, size string) (fill func(*Mailbox), err error) {
	number, unit := size, 1
	for name, bytes := range map[string]int{"KB": 1_000, "MB": 1_000_000} {
		if cut, ok := strings.CutSuffix(size, name); ok {
			number, unit = cut, bytes
		}
	}
	bytes, err := strconv.ParseInt(number, 10, 32)
	if err != nil || int(bytes)*unit < SmallestLarge || int(bytes)*unit > mostMade {
		return nil, fmt.Errorf("load mailbox %s: size %q is not one from %d bytes to 1 GB, such as 35MB", email, size, SmallestLarge)
	}
	return func(box *Mailbox) {
		for range n {
			box.AddLarge(int(bytes) * unit)
		}
	}, nil
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
