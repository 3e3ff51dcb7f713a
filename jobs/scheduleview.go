package jobs

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// ParseSchedule finds a schedule by its name.
func ParseSchedule(name string) (Schedule, error) {
	if s := Schedule(name); slices.Contains(Schedules, s) {
		return s, nil
	}
	var names []string
	for _, s := range Schedules {
		names = append(names, string(s))
	}
	return "", fmt.Errorf("no schedule %q; there are %s", name, strings.Join(names, ", "))
}

// A ScheduleScope says for whom something is done to a schedule: an account, a
// tenant's accounts, or all.
type ScheduleScope struct {
	Account string `json:"account,omitempty"`
	Tenant  string `json:"tenant,omitempty"`
}

// String says whose.
func (s ScheduleScope) String() string {
	switch {
	case s.Account != "":
		return s.Account
	case s.Tenant != "":
		return "tenant " + s.Tenant
	}
	return "all accounts"
}

// A ScheduleOutcome is how the work stands that a schedule asks for.
type ScheduleOutcome struct {
	Schedule Schedule
	Account  string
	State    string
	Live     bool
	Ended    time.Time // zero: it has not
	Error    string
}
