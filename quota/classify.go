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
	ScopeBandwidth   Scope = "bandwidth"   // this user's bytes or day, or an older limiter; may last hours
	ScopeDay         Scope = "day"         // the project's day, which ends at midnight Pacific
	ScopeAbuse       Scope = "abuse"       // an undisclosed usage limit: hours
)

// Refusal is what one of Google's answers means for quota.
type Refusal struct {
	Scope  Scope
	Reason string        // Google's reason, for instance "rateLimitExceeded"
	Words  string        // Google's message, as one line
	Wait   time.Duration // how long to leave Google alone, in real time
	// Feature is what the answer names as refused, if that is a part of the service
	// such as mail sending; "": the limit is that of all calls.
	Feature string
	// Guess says that the wait is ours, since the answer named no moment.
	Guess bool
	// Absurd says that the answer named a moment that was not believed: one that is
	// long past or more than a day ahead, or none that can be read.
	Absurd bool
}

// Classify sorts an answer of Google's. Status is the HTTP status, header and
// body those of the answer, now the local time. Quota time runs scale times faster
// than the clock: 1 outside of tests. A success, or an error that is not about quota,
// has ScopeNone.
//
// Gmail's usual refusal is a 403 with the reason rateLimitExceeded, the status
// PERMISSION_DENIED and no Retry-After (seen 2026-10; two of three without a
// window_start_time either).
func Classify(status int, header http.Header, body []byte, now time.Time, scale int) Refusal {
	if status != http.StatusForbidden && status != http.StatusTooManyRequests {
		return Refusal{}
	}
	a := readAnswer(body)
	r := Refusal{Scope: scopeOf(status, a), Reason: a.reason()}
	if r.Scope == ScopeNone {
		return r
	}
	r.Words = wordsOf(a.message)
	d := deadline{answer: a, header: header, now: googlesNow(header, now), scale: scale}
	if r.Scope == ScopeDay {
		r.Wait = untilMidnightPacific(d.now)
		return r
	}
	wait, said := d.stated()
	if !said {
		wait = defaultWaits[r.Scope] / time.Duration(d.scaleOf(r.Scope))
	}
	if r.Scope == ScopeAbuse {
		wait = max(wait, defaultWaits[ScopeAbuse])
	}
	if r.Scope == ScopeBandwidth {
		r.Feature = featureIn(a.message)
	}
	r.Guess = !said && (r.Scope == ScopeUser || r.Scope == ScopeProject)
	r.Wait, r.Absurd = max(wait, minWait/time.Duration(scale)), d.absurd
	return r
}

// A refusalRule is a row of the table. Empty fields fit anything.
type refusalRule struct {
	status  int
	reasons []string // one of them among errors[], details[] and status
	says    string   // a part of the message, in lower case
	without string   // no part of the message, in lower case
	unit    string   // a part of quota_unit in details[]
	scope   Scope
}

// limited are the reasons by which Google says that some rate was exceeded. A
// message that begins with "Quota exceeded for quota" has the last of them,
// whatever reason is given with it.
var limited = []string{"rateLimitExceeded", "userRateLimitExceeded", "RESOURCE_EXHAUSTED", reasonRate}

const reasonRate = "RATE_LIMIT_EXCEEDED"

// refusalRules is the table of what a 403 or 429 means for quota: the first rule
// that fits decides, and what fits none is not about quota. An answer that is no
// envelope of Google's, such as a proxy's page, has neither reason nor message.
var refusalRules = []refusalRule{
	{says: "too many concurrent requests", scope: ScopeConcurrency},

	{reasons: []string{"dailyLimitExceeded"}, scope: ScopeDay},
	{reasons: limited, unit: "/d/{project}/{user}", scope: ScopeBandwidth},
	{reasons: limited, unit: "/d/{project}", scope: ScopeDay},
	{reasons: limited, says: "per day", without: "per user", scope: ScopeDay},
	{reasons: limited, says: "per day", scope: ScopeBandwidth},

	{reasons: []string{"quotaExceeded"}, scope: ScopeAbuse},

	{reasons: limited, says: "retry after", scope: ScopeBandwidth},

	{reasons: limited, unit: "{user}", scope: ScopeUser},
	{reasons: limited, unit: "{project}", scope: ScopeProject},
	{reasons: []string{"userRateLimitExceeded"}, scope: ScopeUser},
	{reasons: limited, says: "per user", scope: ScopeUser},
	{reasons: limited, says: "per minute", scope: ScopeProject},
	{reasons: limited, says: "per 100 seconds", scope: ScopeProject},
	{reasons: limited, scope: ScopeUser},

	// Any other 429, also a page in HTML, means to slow down. Any other 403 does not.
	{status: http.StatusTooManyRequests, scope: ScopeUser},
}

func scopeOf(status int, a answer) Scope {
	for _, rule := range refusalRules {
		if rule.fits(status, a) {
			return rule.scope
		}
	}
	return ScopeNone
}
