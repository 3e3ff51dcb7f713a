package quota

import (
	"context"
	"time"
)

// Lane says who asks for quota. Every lane spends from the same windows; they
// differ in how far up a limit each may fill it.
type Lane string

// The lanes, from the one that people wait on down to the one that nobody does.
const (
	Interactive Lane = "interactive"
	Sync        Lane = "sync"     // live, incremental
	Backfill    Lane = "backfill" // bulk history
)

// Lanes lists all lanes in the order of their standing.
var Lanes = []Lane{Interactive, Sync, Backfill}

// Valid reports whether l is one of [Lanes].
func (l Lane) Valid() bool { return l == Interactive || l == Sync || l == Backfill }

// Caller says for whom, and in which lane, a Google call is made. It travels in
// the context of the request, see [WithCaller].
type Caller struct {
	Project string // the Google Cloud project whose quota is spent
	User    string // the Google user whose quota is spent, usually the address; see [Caller.Validate]
	Lane    Lane

	// MaxWait is how long a refused call may wait in place for its turn before
	// it is refused to the caller. Zero: not at all. Calls of one account and
	// lane that wait do so in line, so that only the first asks the ledger. People's
	// calls wait up to two seconds for a place in flight all the same.
	MaxWait time.Duration
}

type callerKey struct{}

// WithCaller returns a context whose Google calls are charged to c by
// [Transport].
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFrom returns the caller that [WithCaller] put into ctx.
func CallerFrom(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok
}
