package fault

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"headroom/internal/lab/fakegoogle/meter"
	"headroom/internal/lab/fakegoogle/wire"
)

// A Fault scripts the answers to some calls. It sees calls that the meter
// admitted; they are charged like any other.
//
// Which calls: those that fit User, Project, Method, ID and Calendar, an empty one fitting
// all, and come between AfterMS and ForMS later. Of these, counted from 1, only the
// Nth; or Count of them beginning with the From-th (all of them when Count is zero,
// the first when From is). All times are real, not divided by the server's scale.
//
// What happens: first DelayMS passes. Then one of: Hang, Close, Truncate, or an
// answer made of Status, Reason, Message, Body and HTML; or the true answer with an
// [Quirk]. A fault that has none of them only delays.
type Fault struct {
	User    string `json:"user,omitempty"`
	Project string `json:"project,omitempty"`
	Method  string `json:"method,omitempty"` // id of the discovery document, or "token"
	ID      string `json:"id,omitempty"`     // of a message, thread or event
	// Calendar is the id of one calendar; User is then the account it is asked by.
	Calendar string `json:"calendar,omitempty"`

	Nth   int `json:"nth,omitempty"`
	From  int `json:"from,omitempty"`
	Count int `json:"count,omitempty"`

	// AfterMS is how long after it was put in force the fault begins, and ForMS how
	// long it then lasts; for ever when zero.
	AfterMS int `json:"after_ms,omitempty"`
	ForMS   int `json:"for_ms,omitempty"`

	DelayMS int `json:"delay_ms,omitempty"`
	// Status is the HTTP status and the envelope's code. Where it is zero the
	// reason's is taken.
	Status int `json:"status,omitempty"`
	// Reason names an answer of Google's (rateLimitExceeded, backendError,
	// invalidPageToken, ...), or one of the meter's refusals, or for the token
	// endpoint its error code (invalid_grant, ...). Where it is empty the status
	// chooses one.
	Reason  string            `json:"reason,omitempty"`
	Message string            `json:"message,omitempty"` // instead of the reason's own
	Body    string            `json:"body,omitempty"`    // sent as it is, instead of an envelope
	HTML    bool              `json:"html,omitempty"`    // an error page, as a proxy in front of Google sends
	Headers map[string]string `json:"headers,omitempty"`
	Bare    bool              `json:"bare,omitempty"` // the envelope of older answers, without status and details
	// RetryAfterMS is how far ahead the moment lies that the answer names; a negative
	// one has passed. RetryAs chooses where it stands: in the message, which is then
	// "User-rate limit exceeded.  Retry after ..." unless Message is set; or in the
	// header Retry-After, as seconds or as a date.
	RetryAfterMS int    `json:"retry_after_ms,omitempty"`
	RetryAs      string `json:"retry_as,omitempty"`
	// WindowAgeMS is how long ago the window began that the reasons
	// userUnitsPerMinute and projectUnitsPerMinute name; they name none when zero.
	WindowAgeMS int `json:"window_age_ms,omitempty"`

	Close    bool `json:"close,omitempty"`    // the connection is reset without an answer
	Truncate bool `json:"truncate,omitempty"` // half of the true answer, then the connection is cut
	Hang     bool `json:"hang,omitempty"`     // no answer for a minute, or until the client goes; then as Close

	Quirk
}

// MethodToken is what faults call the token endpoint.
const MethodToken = "token"

// The places of a fault's moment; text is the default.
const (
	RetryAsText    = "text"
	RetryAsSeconds = "seconds"
	RetryAsDate    = "date"
)

// A State is a fault and how far it has come.
type State struct {
	Fault
	Seen    int `json:"seen"`    // calls that fitted
	Applied int `json:"applied"` // calls that it changed

	added time.Time
}

// Validate reports what makes a fault meaningless.
func (f Fault) Validate() error {
	var problems []error
	if f.Nth < 0 || f.From < 0 || f.Count < 0 || f.DelayMS < 0 || f.AfterMS < 0 || f.ForMS < 0 || f.WindowAgeMS < 0 {
		problems = append(problems, errors.New("numbers may not be negative"))
	}
	if f.Nth > 0 && (f.From > 0 || f.Count > 0) {
		problems = append(problems, errors.New("nth cannot be combined with from and count"))
	}
	if f.Status != 0 && (f.Status < 200 || f.Status > 599) {
		problems = append(problems, errors.New("status must be from 200 to 599"))
	}
	switch f.RetryAs {
	case "", RetryAsText, RetryAsSeconds, RetryAsDate:
	default:
		problems = append(problems, errors.New("retry_as must be text, seconds or date"))
	}
	if n := count(f.Close, f.Truncate, f.Hang, f.answers(), f.Quirk.any()); n > 1 {
		problems = append(problems, errors.New("choose one of close, truncate, hang, an answer and the true one with a quirk"))
	} else if n == 0 && f.DelayMS == 0 {
		problems = append(problems, errors.New("nothing to do: give a status, reason, body, delay_ms, close, truncate, hang or a quirk"))
	}
	if f.Method == MethodToken && f.Quirk.any() {
		problems = append(problems, errors.New("the token endpoint has no quirks"))
	}
	problems = append(problems, f.Quirk.validate())
	if f.Reason != "" && f.Status == 0 && f.Body == "" && f.Method != MethodToken {
		if _, known := faultError(f); !known {
			problems = append(problems, errors.New("reason "+f.Reason+" is none the fake knows: give a status with it"))
		}
	}
	return errors.Join(problems...)
}

// answers reports whether the fault makes an answer of its own.
func (f Fault) answers() bool {
	return f.Status != 0 || f.Reason != "" || f.Message != "" || f.Body != "" || f.HTML || f.inText()
}

func count(conditions ...bool) int {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}

func (f Fault) fits(c meter.Call) bool {
	fits := func(want, have string) bool { return want == "" || want == have }
	return fits(wire.AddressKey(f.User), c.Owner()) && fits(f.Project, c.Project) && fits(f.Method, c.Method) &&
		fits(f.ID, c.ID) && fits(f.Calendar, c.Calendar)
}

// during reports whether the fault is in force so long after it was added.
func (f Fault) during(age time.Duration) bool {
	age -= time.Duration(f.AfterMS) * time.Millisecond
	return age >= 0 && (f.ForMS == 0 || age < time.Duration(f.ForMS)*time.Millisecond)
}

// due reports whether the fault applies to the n-th call that fits it.
func (f Fault) due(n int) bool {
	if f.Nth > 0 {
		return n == f.Nth
	}
	from := max(f.From, 1)
	return n >= from && (f.Count == 0 || n < from+f.Count)
}

// List is the faults in force. The zero value is empty and ready.
type List struct {
	mu     sync.Mutex
	states []*State
	total  int64
}

// Match counts a call at every fault that it fits now and returns the first that is due.
func (l *List) Match(c meter.Call) (Fault, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var chosen *State
	for _, s := range l.states {
		if !s.fits(c) || !s.during(time.Since(s.added)) {
			continue
		}
		s.Seen++
		if chosen == nil && s.due(s.Seen) {
			chosen = s
		}
	}
	if chosen == nil {
		return Fault{}, false
	}
	chosen.Applied++
	l.total++
	return chosen.Fault, true
}

// Applied counts the calls that faults changed.
func (l *List) Applied() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// Add puts a fault in force, after those that are. The error names what is wrong
// with it.
func (l *List) Add(f Fault) error {
	if err := f.Validate(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.states = append(l.states, &State{Fault: f, added: time.Now()})
	return nil
}

// Clear ends all faults. Calls that one is holding stay held.
func (l *List) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.states = nil
}

// All returns the faults in force.
func (l *List) All() []State {
	l.mu.Lock()
	defer l.mu.Unlock()
	states := make([]State, 0, len(l.states))
	for _, f := range l.states {
		states = append(states, *f)
	}
	return states
}

// defaultReason is the reason of a fault that has a status only.
func defaultReason(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "badRequest"
	case http.StatusUnauthorized:
		return "authError"
	case http.StatusForbidden:
		return "forbidden"
	case http.StatusNotFound:
		return "notFound"
	case http.StatusGone:
		return "deleted"
	case http.StatusTooManyRequests:
		return "rateLimitExceeded"
	}
	return "backendError"
}
