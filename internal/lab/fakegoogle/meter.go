package fakegoogle

import (
	"cmp"
	"sync"
	"time"
)

// A Refusal says why the meter refused a call.
type Refusal string

// The refusals.
const (
	RefusedUserUnits    Refusal = "userUnitsPerMinute"
	RefusedProjectUnits Refusal = "projectUnitsPerMinute"
	RefusedConcurrency  Refusal = "concurrentRequests"
	RefusedBytes        Refusal = "bytesPerDay"
	RefusedEarly        Refusal = "calledTooEarly" // before the moment that it was told; see [Options].PushBack
)

// meterSettings is what a meter is made from; all values are set. Only limits
// change later, under the meter's lock.
type meterSettings struct {
	prices        *priceList
	algorithm     string
	userLimit     int64
	projectLimit  int64
	inFlightLimit int
	bytesPerDay   int64
	window, day   time.Duration // already divided by the scale
	chargeRefused bool
	pushBack      time.Duration
}

// A meter charges calls, refuses those that exceed a limit, and keeps the exact
// log. It is safe for concurrent use; its lock also gives arrivals their order.
type meter struct {
	set   meterSettings
	start time.Time
	clock func() time.Duration // monotonic, since start

	mu       sync.Mutex
	users    map[userKey]*account
	projects map[string]*account
	boxes    map[string]*boxLoad
	log      arrivalLog
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
	// toldUntil is the moment before which the user was told not to call. It is kept
	// only where calling earlier has a price.
	toldUntil time.Duration
}

// A call is what the meter needs to know of a request.
type call struct {
	project, user      string
	method, format, id string
	quotaUser          bool
	// Of a call of Calendar: the account that is asked about, which may be another
	// than the user who is charged, and the calendar.
	account, calendar string
}

// owner is whose data a call asks for.
func (c call) owner() string { return cmp.Or(c.account, c.user) }

// A verdict is the meter's answer. Whoever got one with refused == "" must call
// release exactly once.
type verdict struct {
	number      int // of the arrival
	refused     Refusal
	limit       int64     // that refused, for units only
	windowStart time.Time // fixed and anchored windows only
	retryAt     time.Time // bytes and early calls only
	release     func()
}

func newMeter(set meterSettings) (*meter, error) {
	if _, err := newLimiter(set.algorithm, 1, time.Minute, time.Time{}, 0); err != nil {
		return nil, err
	}
	m := &meter{
		set:      set,
		start:    time.Now(),
		users:    map[userKey]*account{},
		projects: map[string]*account{},
		boxes:    map[string]*boxLoad{},
	}
	m.clock = func() time.Duration { return time.Since(m.start) }
	return m, nil
}

// arrive charges a call, or refuses it, and logs it either way.
func (m *meter) arrive(c call) verdict {
	m.mu.Lock()
	defer m.mu.Unlock()

	now := m.clock()
	units := m.set.prices.of(c.method, c.format)
	user, project, box := m.user(c), m.project(c), m.box(c.user)

	v := m.judge(now, units, user, project, box)
	if v.refused == "" || m.set.chargeRefused {
		user.enforced.take(now, units)
		project.enforced.take(now, units)
	}
	userOver := user.exact.note(now, c.method, units, v.refused)
	projectOver := project.exact.note(now, c.method, units, v.refused)
	// A refused call was there too: in flight with it, the limit was passed.
	inFlight := box.inFlight + 1
	v.number = m.log.add(c, logEntry{
		at: now, units: units, inFlight: int32(inFlight), over: userOver || projectOver, refused: v.refused,
	})
	user.use.mostInFlight = max(user.use.mostInFlight, inFlight)
	if c.quotaUser {
		user.use.quotaUserCalls++
	}
	if v.refused == "" {
		box.inFlight++
		v.release = sync.OnceFunc(func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			box.inFlight--
		})
	}
	return v
}

// judge decides without changing what was spent. Calls that come too early are
// refused before all others, and push the moment that they were told back.
func (m *meter) judge(now time.Duration, units int64, user, project *account, box *boxLoad) verdict {
	if now >= box.dayStart+m.set.day {
		box.dayStart, box.bytes = now, 0
	}
	at := m.start.Add
	switch {
	case now < box.toldUntil:
		box.toldUntil += m.set.pushBack
		return verdict{refused: RefusedEarly, retryAt: at(box.toldUntil)}
	case box.inFlight >= m.set.inFlightLimit:
		return verdict{refused: RefusedConcurrency}
	case !user.enforced.fits(now, units):
		return verdict{refused: RefusedUserUnits, limit: m.set.userLimit, windowStart: m.windowStart(user.enforced, now)}
	case !project.enforced.fits(now, units):
		return verdict{refused: RefusedProjectUnits, limit: m.set.projectLimit, windowStart: m.windowStart(project.enforced, now)}
	case box.bytes >= m.set.bytesPerDay:
		box.tell(m.set, box.dayStart+m.set.day)
		return verdict{refused: RefusedBytes, retryAt: at(box.dayStart + m.set.day)}
	}
	return verdict{}
}

// tell notes that the user was told not to call before a moment.
func (b *boxLoad) tell(set meterSettings, until time.Duration) {
	if set.pushBack > 0 {
		b.toldUntil = max(b.toldUntil, until)
	}
}

// told is tell for an answer that the meter did not give.
func (m *meter) told(user string, wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.box(user).tell(m.set, m.clock()+wait)
}

// answered notes the status of the answer to an arrival.
func (m *meter) answered(number, status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log.answered(number, status)
}

// windowStart is when the window around now began, for limits that have one.
func (m *meter) windowStart(l limiter, now time.Duration) time.Time {
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

// delivered notes that whole messages go out as the answer to c, by their ids and
// raw sizes. It is called before the bytes are sent, so that a client that has
// read them finds them counted; undo takes it back when they could not be sent.
func (m *meter) delivered(c call, sizes map[string]int) (undo func()) {
	m.mu.Lock()
	defer m.mu.Unlock()

	user, box := m.user(c), m.box(c.user)
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

func (m *meter) user(c call) *account {
	key := userKey{project: c.project, user: c.user}
	if m.users[key] == nil {
		m.users[key] = m.account(m.set.userLimit)
	}
	return m.users[key]
}

func (m *meter) project(c call) *account {
	if m.projects[c.project] == nil {
		m.projects[c.project] = m.account(m.set.projectLimit)
	}
	return m.projects[c.project]
}

func (m *meter) account(limit int64) *account {
	// newMeter has made one of the same algorithm: it cannot fail here.
	enforced, _ := newLimiter(m.set.algorithm, limit, m.set.window, m.start, m.set.prices.dearest)
	return &account{enforced: enforced, exact: tally{limit: limit, window: m.set.window}}
}

func (m *meter) box(user string) *boxLoad {
	if m.boxes[user] == nil {
		m.boxes[user] = &boxLoad{dayStart: m.clock(), fetched: map[string]bool{}}
	}
	return m.boxes[user]
}
