package meter

import (
	"cmp"
	"sync"
	"time"
)

// A Refusal is the reason for which the meter refused a call.
type Refusal string

// The refusals.
const (
	RefusedUserUnits    Refusal = "userUnitsPerMinute"
	RefusedProjectUnits Refusal = "projectUnitsPerMinute"
	RefusedConcurrency  Refusal = "concurrentRequests"
	RefusedBytes        Refusal = "bytesPerDay"
	RefusedEarly        Refusal = "calledTooEarly" // before the moment that an answer named; see [Options].PushBack
)

// Settings is what a meter is made from; all values are set. Only limits
// change later, under the meter's lock.
type Settings struct {
	Prices        *PriceList
	Algorithm     string
	UserLimit     int64
	ProjectLimit  int64
	InFlightLimit int
	BytesPerDay   int64
	Window, Day   time.Duration // already divided by the scale
	ChargeRefused bool
	PushBack      time.Duration
}

// A Meter charges calls, refuses those that exceed a limit, and keeps the exact
// log. It is safe for concurrent use; its lock also gives arrivals their order.
type Meter struct {
	Set   Settings
	start time.Time
	clock func() time.Duration // monotonic, since start

	mu       sync.Mutex
	users    map[userKey]*account
	projects map[string]*account
	boxes    map[string]*boxLoad
	log      arrivalLog
	// calendars counts the calls of Calendar.
	calendars calendarCounts
}

// userKey names what Google meters: one user within one Cloud project.
type userKey struct{ project, user string }

// An account is one limit: how it is enforced and what really came.
type account struct {
	enforced limiter
	exact    tally
	use      usage
}

// usage is what is only known of users.
type usage struct {
	mostInFlight       int
	quotaUserCalls     int64
	fetched, refetched int64
}

// A boxLoad is what limits a mailbox whatever project asks.
type boxLoad struct {
	inFlight int
	dayStart time.Duration
	bytes    int64 // since dayStart
	total    int64
	fetched  map[string]bool
	// waitUntil is the moment before which an answer asked the user not to call. It
	// is kept only where calling earlier has a price.
	waitUntil time.Duration
}

// A Call is what the meter needs to know of a request.
type Call struct {
	Project, User      string
	Method, Format, ID string
	QuotaUser          bool
	// Of a call of Calendar: the account that is asked about, which may be another
	// than the user who is charged, and the calendar.
	Account, Calendar string
}

// Owner is whose data a call asks for.
func (c Call) Owner() string { return cmp.Or(c.Account, c.User) }

// A Verdict is the meter's answer. Whoever got one with refused == "" must call
// release exactly once.
type Verdict struct {
	Number      int // of the arrival
	Refused     Refusal
	Limit       int64     // that refused, for units only
	WindowStart time.Time // fixed and anchored windows only
	RetryAt     time.Time // bytes and early calls only
	Release     func()
}

// New makes a meter that has seen no call.
func New(set Settings) (*Meter, error) {
	if _, err := newLimiter(set.Algorithm, 1, time.Minute, time.Time{}, 0); err != nil {
		return nil, err
	}
	m := &Meter{
		Set:       set,
		start:     time.Now(),
		users:     map[userKey]*account{},
		projects:  map[string]*account{},
		boxes:     map[string]*boxLoad{},
		calendars: calendarCounts{},
	}
	m.clock = func() time.Duration { return time.Since(m.start) }
	return m, nil
}

// Arrive charges a call, or refuses it, and logs it either way.
func (m *Meter) Arrive(c Call) Verdict {
	m.mu.Lock()
	defer m.mu.Unlock()

	now := m.clock()
	units := m.Set.Prices.of(c.Method, c.Format)
	user, project, box := m.user(c), m.project(c), m.box(c.User)

	v := m.judge(now, units, user, project, box)
	if v.Refused == "" || m.Set.ChargeRefused {
		user.enforced.take(now, units)
		project.enforced.take(now, units)
	}
	userOver := user.exact.note(now, c.Method, units, v.Refused)
	projectOver := project.exact.note(now, c.Method, units, v.Refused)
	// A refused call was there too: in flight with it, the limit was passed.
	inFlight := box.inFlight + 1
	v.Number = m.log.add(c, logEntry{
		at: now, units: units, inFlight: int32(inFlight), over: userOver || projectOver, refused: v.Refused,
	})
	user.use.mostInFlight = max(user.use.mostInFlight, inFlight)
	if c.QuotaUser {
		user.use.quotaUserCalls++
	}
	if c.Account != "" {
		m.calendars.note(c, v.Refused != "")
	}
	if v.Refused == "" {
		box.inFlight++
		v.Release = sync.OnceFunc(func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			box.inFlight--
		})
	}
	return v
}

// judge decides without changing what was spent. Calls that come too early are
// refused before all others, and postpone the moment that an answer named.
func (m *Meter) judge(now time.Duration, units int64, user, project *account, box *boxLoad) Verdict {
	if now >= box.dayStart+m.Set.Day {
		box.dayStart, box.bytes = now, 0
	}
	at := m.start.Add
	switch {
	case now < box.waitUntil:
		box.waitUntil += m.Set.PushBack
		return Verdict{Refused: RefusedEarly, RetryAt: at(box.waitUntil)}
	case box.inFlight >= m.Set.InFlightLimit:
		return Verdict{Refused: RefusedConcurrency}
	case !user.enforced.fits(now, units):
		return Verdict{Refused: RefusedUserUnits, Limit: m.Set.UserLimit, WindowStart: m.windowStart(user.enforced, now)}
	case !project.enforced.fits(now, units):
		return Verdict{Refused: RefusedProjectUnits, Limit: m.Set.ProjectLimit, WindowStart: m.windowStart(project.enforced, now)}
	case box.bytes >= m.Set.BytesPerDay:
		box.askToWait(m.Set, box.dayStart+m.Set.Day)
		return Verdict{Refused: RefusedBytes, RetryAt: at(box.dayStart + m.Set.Day)}
	}
	return Verdict{}
}

// askToWait notes that an answer asked the user not to call before a moment.
func (b *boxLoad) askToWait(set Settings, until time.Duration) {
	if set.PushBack > 0 {
		b.waitUntil = max(b.waitUntil, until)
	}
}

// AskToWait notes that an answer which the meter did not give asked the user not to
// call for a time.
func (m *Meter) AskToWait(user string, wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.box(user).askToWait(m.Set, m.clock()+wait)
}

// Answered notes the status of the answer to an arrival.
func (m *Meter) Answered(number, status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log.answered(number, status)
}

// windowStart is when the window around now began, for limits that have one.
func (m *Meter) windowStart(l limiter, now time.Duration) time.Time {
	switch l := l.(type) {
	case *fixedWindow:
		return l.startAt(now)
	case *anchoredWindow:
		if l.open(now) {
			return m.start.Add(l.start)
		}
	}
	return time.Time{}
}

// Delivered notes that whole messages go out as the answer to c, by their ids and
// raw sizes. It is called before the bytes are sent, so that a client that has
// read them finds them counted; undo takes it back when they could not be sent.
func (m *Meter) Delivered(c Call, sizes map[string]int) (undo func()) {
	m.mu.Lock()
	defer m.mu.Unlock()

	user, box := m.user(c), m.box(c.User)
	var first []string // delivered for the first time
	for id, size := range sizes {
		box.bytes += int64(size)
		box.total += int64(size)
		if !box.fetched[id] {
			box.fetched[id] = true
			first = append(first, id)
		}
	}
	fetched, refetched := int64(len(sizes)), int64(len(sizes)-len(first))
	user.use.fetched += fetched
	user.use.refetched += refetched
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		user.use.fetched -= fetched
		user.use.refetched -= refetched
		for _, id := range first {
			delete(box.fetched, id)
		}
	}
}

func (m *Meter) user(c Call) *account {
	key := userKey{project: c.Project, user: c.User}
	if m.users[key] == nil {
		m.users[key] = m.account(m.Set.UserLimit)
	}
	return m.users[key]
}

func (m *Meter) project(c Call) *account {
	if m.projects[c.Project] == nil {
		m.projects[c.Project] = m.account(m.Set.ProjectLimit)
	}
	return m.projects[c.Project]
}

func (m *Meter) account(limit int64) *account {
	// newMeter has made one of the same algorithm: it cannot fail here.
	enforced, _ := newLimiter(m.Set.Algorithm, limit, m.Set.Window, m.start, m.Set.Prices.dearest)
	return &account{enforced: enforced, exact: tally{limit: limit, window: m.Set.Window}}
}

func (m *Meter) box(user string) *boxLoad {
	if m.boxes[user] == nil {
		m.boxes[user] = &boxLoad{dayStart: m.clock(), fetched: map[string]bool{}}
	}
	return m.boxes[user]
}
