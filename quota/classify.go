package quota

import (
	"net/http"
	"time"
)

// Scope says whom one of Google's quota refusals concerns.
type Scope string

// The scopes of a refusal.
const (
	ScopeNone        Scope = ""            // not a quota refusal
	ScopeUser        Scope = "user"        // this user's minute
	ScopeProject     Scope = "project"     // the whole project's minute
	ScopeConcurrency Scope = "concurrency" // too many requests of this user in flight
	ScopeBandwidth   Scope = "bandwidth"   // this user's bytes
	ScopeDay         Scope = "day"         // the project's day
	ScopeAbuse       Scope = "abuse"       // an undisclosed usage limit: hours
)

// Refusal is what one of Google's answers means for quota.
type Refusal struct {
	Scope  Scope
	Reason string        // Google's reason, for instance "rateLimitExceeded"
	Wait   time.Duration // how long to leave Google alone, in real time
}

// Classify sorts an answer of Google's. Status is the HTTP status, body the
// (possibly truncated) body, now the local time. A success, or an error that is
// not about quota, has ScopeNone.
func Classify(status int, header http.Header, body []byte, now time.Time) Refusal {
	panic("contract only")
}
