package quota

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
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
	ScopeBandwidth   Scope = "bandwidth"   // this user's bytes, or an older limiter; may last hours
	ScopeDay         Scope = "day"         // the project's day, which ends at midnight Pacific
	ScopeAbuse       Scope = "abuse"       // an undisclosed usage limit: hours
)

// Refusal is what one of Google's answers means for quota.
type Refusal struct {
	Scope  Scope
	Reason string        // Google's reason, for instance "rateLimitExceeded"
	Wait   time.Duration // how long to leave Google alone, in real time
}

// How long to wait when the answer does not say, and the most that is believed
// of one that does: clocks differ, and absurd dates happen.
const (
	defaultMinuteWait    = 65 * time.Second // past the end of any window that is full now
	defaultConcurrency   = 2 * time.Second
	defaultBandwidthWait = 15 * time.Minute
	defaultAbuseWait     = 2 * time.Hour
	maxMinuteWait        = 65 * time.Second
	maxWait              = 24 * time.Hour
)

// Classify sorts an answer of Google's. Status is the HTTP status, body the
// (possibly truncated) body, now the local time. A success, or an error that is
// not about quota, has ScopeNone.
//
// Gmail's usual refusal is a 403 with the reason rateLimitExceeded, the status
// PERMISSION_DENIED and no Retry-After (seen 2026-10; two of three without a
// window_start_time either).
func Classify(status int, header http.Header, body []byte, now time.Time) Refusal {
	return classify(status, header, body, now, 1)
}

// Classify is the function of that name, with waits of a minute divided by the
// ledger's scale.
func (l *Ledger) Classify(status int, header http.Header, body []byte, now time.Time) Refusal {
	return classify(status, header, body, now, l.scale)
}

func classify(status int, header http.Header, body []byte, now time.Time, scale int) Refusal {
	if status != http.StatusForbidden && status != http.StatusTooManyRequests {
		return Refusal{}
	}
	answer := readAnswer(body)
	r := Refusal{Scope: answer.scope(status), Reason: answer.reason()}
	if r.Scope == ScopeNone {
		return r
	}
	perScale := func(d time.Duration) time.Duration { return d / time.Duration(scale) }
	stated, ok := answer.stated(header, now)
	switch r.Scope {
	case ScopeUser, ScopeProject:
		if start, known := answer.windowStart(); known {
			r.Wait = min(max(start.Add(perScale(time.Minute)).Sub(now), perScale(time.Second)), perScale(maxMinuteWait))
		} else if ok {
			r.Wait = stated
		} else {
			r.Wait = perScale(defaultMinuteWait)
		}
	case ScopeConcurrency:
		r.Wait = defaultConcurrency
		if ok {
			r.Wait = stated
		}
	case ScopeBandwidth:
		r.Wait = defaultBandwidthWait
		if ok {
			r.Wait = stated
		}
	case ScopeDay:
		r.Wait = untilMidnightPacific(now)
	case ScopeAbuse:
		r.Wait = defaultAbuseWait
		if ok {
			r.Wait = max(stated, defaultAbuseWait)
		}
	}
	r.Wait = min(max(r.Wait, time.Millisecond), maxWait)
	return r
}

// answer is Google's error envelope, in its newer and older forms.
type answer struct {
	Error struct {
		Message string `json:"message"`
		Status  string `json:"status"`
		Errors  []struct {
			Reason string `json:"reason"`
			Domain string `json:"domain"`
		} `json:"errors"`
		Details []json.RawMessage `json:"details"`
	} `json:"error"`

	details []detail
}

// detail is a google.rpc.ErrorInfo; details of other types leave it empty.
type detail struct {
	Reason   string            `json:"reason"`
	Metadata map[string]string `json:"metadata"`
}

func readAnswer(body []byte) answer {
	var a answer
	if json.Unmarshal(body, &a) != nil {
		return answer{} // HTML, or a cut body
	}
	for _, raw := range a.Error.Details {
		var d detail
		if json.Unmarshal(raw, &d) == nil {
			a.details = append(a.details, d)
		}
	}
	return a
}

func (a answer) reason() string {
	if len(a.Error.Errors) > 0 && a.Error.Errors[0].Reason != "" {
		return a.Error.Errors[0].Reason
	}
	for _, d := range a.details {
		if d.Reason != "" {
			return d.Reason
		}
	}
	return a.Error.Status
}

// scope is the table: the first row that fits decides.
func (a answer) scope(status int) Scope {
	message, reason := strings.ToLower(a.Error.Message), a.reason()
	has := func(part string) bool { return strings.Contains(message, part) }
	limited := reason == "rateLimitExceeded" || reason == "userRateLimitExceeded" || reason == "RATE_LIMIT_EXCEEDED" ||
		a.Error.Status == "RESOURCE_EXHAUSTED" || strings.HasPrefix(message, "quota exceeded for quota")
	switch {
	case has("too many concurrent requests"):
		return ScopeConcurrency
	case reason == "dailyLimitExceeded", limited && has("per day"):
		return ScopeDay
	case reason == "quotaExceeded":
		return ScopeAbuse
	case limited && has("retry after"):
		return ScopeBandwidth
	case limited && a.perProject(message):
		return ScopeProject
	case limited, status == http.StatusTooManyRequests:
		return ScopeUser
	}
	return ScopeNone
}

func (a answer) perProject(message string) bool {
	for _, d := range a.details {
		if unit := d.Metadata["quota_unit"]; unit != "" {
			return !strings.Contains(unit, "{user}")
		}
	}
	return strings.Contains(message, "per minute") && !strings.Contains(message, "per user")
}

func (a answer) windowStart() (time.Time, bool) {
	for _, d := range a.details {
		if s, err := strconv.ParseInt(d.Metadata["window_start_time"], 10, 64); err == nil {
			return time.Unix(s, 0), true
		}
	}
	return time.Time{}, false
}

var retryAfterText = regexp.MustCompile(`(?i)retry after\s+(\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:\d\d))`)

// stated is the wait that the answer itself asks for, in its text or its header.
func (a answer) stated(header http.Header, now time.Time) (time.Duration, bool) {
	if m := retryAfterText.FindStringSubmatch(a.Error.Message); m != nil {
		if at, err := time.Parse(time.RFC3339Nano, m[1]); err == nil {
			return at.Sub(now), true
		}
	}
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, int64(maxWait/time.Second))) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil {
		return at.Sub(now), true
	}
	return 0, false
}

// untilMidnightPacific is the time to the end of Google's day, which the
// Calendar quota page gives as midnight Pacific Time (2026-11-29).
func untilMidnightPacific(now time.Time) time.Duration {
	local := now.In(pacific)
	return time.Date(local.Year(), local.Month(), local.Day()+1, 0, 0, 0, 0, pacific).Sub(now)
}
