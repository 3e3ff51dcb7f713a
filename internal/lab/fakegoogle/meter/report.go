package meter

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"headroom/internal/lab/fakegoogle/wire"
)

// A Report sums up the exact log. GET /_fake/meter returns it as JSON.
type Report struct {
	Prices        string  `json:"prices"`
	Meter         string  `json:"meter"`
	Scale         int     `json:"scale"`
	WindowSeconds float64 `json:"window_seconds"` // 60 over Scale

	// Users has an entry per project and user that called, and Projects one per
	// project, both sorted by name.
	Users    []UserReport    `json:"users"`
	Projects []ProjectReport `json:"projects"`

	// TokenCalls counts calls of the token endpoint by user ("" where the grant
	// named none). They cost nothing and are not metered.
	TokenCalls map[string]int64 `json:"token_calls"`
	// Unauthenticated counts calls answered 401 before the meter, and Unrouted
	// those to paths that are no method of the fake.
	Unauthenticated int64 `json:"unauthenticated"`
	Unrouted        int64 `json:"unrouted"`
	// Faulted counts calls that a scripted fault changed.
	Faulted int64 `json:"faulted"`

	// Calendar is the account of Calendar's meter, which is another. All else here is
	// of Gmail, but what was not metered.
	Calendar CalendarReport `json:"calendar"`
}

// A LimitReport is the account of one limit since the start of the server. A
// window is half-open, WindowSeconds long and begins anywhere.
type LimitReport struct {
	Limit                int64             `json:"limit"`                   // units per window, now in force
	MostInWindow         int64             `json:"most_in_window"`          // of all arrivals, refused ones included
	MostAdmittedInWindow int64             `json:"most_admitted_in_window"` // of those admitted
	WindowsOverLimit     int64             `json:"windows_over_limit"`      // arrivals at which the window that ended there held more than the limit then in force, refused ones included
	Units                int64             `json:"units"`                   // of all arrivals
	UnitsAdmitted        int64             `json:"units_admitted"`
	Calls                int64             `json:"calls"`
	CallsByMethod        map[string]int64  `json:"calls_by_method"`
	Refused              int64             `json:"refused"`
	Refusals             map[Refusal]int64 `json:"refusals"` // by reason
	FirstCall            time.Time         `json:"first_call"`
	LastCall             time.Time         `json:"last_call"`
}

// A UserReport is the account of one user within one project.
type UserReport struct {
	Project string `json:"project"`
	User    string `json:"user"`
	LimitReport
	// MostInFlight is the most calls of the mailbox that were between meter and
	// answer at once when one of this project arrived, that one included even if
	// it was refused.
	MostInFlight int `json:"most_in_flight"`
	// Fetches counts whole messages delivered (messages.get and threads.get, full or
	// raw, answered 200), and Refetched those of them whose message had been delivered before.
	Fetches   int64 `json:"fetches"`
	Refetched int64 `json:"refetched"`
	// Bytes is the size of the raw messages so delivered, whatever the project.
	Bytes int64 `json:"bytes"`
	// QuotaUserCalls counts calls that named a quotaUser. It changes nothing:
	// whether Gmail's limit follows quotaUser is unverified, and the fake meters
	// the user of the token.
	QuotaUserCalls int64 `json:"quota_user_calls"`
}

// A ProjectReport is the account of one project.
type ProjectReport struct {
	Project string `json:"project"`
	LimitReport
}

// User returns the report of a user, of the first project by name in which it
// called; the zero UserReport where it did not call.
func (r Report) User(email string) UserReport {
	for _, u := range r.Users {
		if u.User == wire.AddressKey(email) {
			return u
		}
	}
	return UserReport{}
}

// Refused returns how many calls the meter refused.
func (r Report) Refused() int64 {
	var n int64
	for _, p := range r.Projects {
		n += p.Refused
	}
	return n
}

// OverLimit returns how many users and projects had a window that held more
// than their limit in force at its end, refused calls included.
func (r Report) OverLimit() int {
	n := 0
	for _, u := range r.Users {
		if u.WindowsOverLimit > 0 {
			n++
		}
	}
	for _, p := range r.Projects {
		if p.WindowsOverLimit > 0 {
			n++
		}
	}
	return n
}

// Refetched returns how many messages were delivered again, over all users.
func (r Report) Refetched() int64 {
	var n int64
	for _, u := range r.Users {
		n += u.Refetched
	}
	return n
}

// Reports returns the accounts of all users and projects, sorted by name.
func (m *Meter) Reports() ([]UserReport, []ProjectReport) {
	users, projects := []UserReport{}, []ProjectReport{}
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, a := range m.users {
		box := m.boxes[key.user]
		users = append(users, UserReport{
			Project: key.project, User: key.user, LimitReport: m.report(&a.exact),
			MostInFlight: a.use.mostInFlight,
			Fetches:      a.use.fetched, Refetched: a.use.refetched,
			Bytes: box.total, QuotaUserCalls: a.use.quotaUserCalls,
		})
	}
	for project, a := range m.projects {
		projects = append(projects, ProjectReport{Project: project, LimitReport: m.report(&a.exact)})
	}
	slices.SortFunc(users, func(a, b UserReport) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.User, b.User))
	})
	slices.SortFunc(projects, func(a, b ProjectReport) int { return cmp.Compare(a.Project, b.Project) })
	return users, projects
}

func (m *Meter) report(t *tally) LimitReport {
	r := LimitReport{
		Limit: t.limit, MostInWindow: t.most, MostAdmittedInWindow: t.mostAdmitted, WindowsOverLimit: t.over,
		Units: t.units, UnitsAdmitted: t.admittedUnits,
		Calls: t.calls, CallsByMethod: maps.Clone(t.byMethod), Refusals: maps.Clone(t.refusals),
		FirstCall: m.start.Add(t.first).UTC(), LastCall: m.start.Add(t.last).UTC(),
	}
	for _, n := range t.refusals {
		r.Refused += n
	}
	return r
}
