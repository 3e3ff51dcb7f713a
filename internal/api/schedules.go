package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"headroom/internal/control"
	"headroom/jobs"
)

const tagSchedules = "schedules"

// SchedulePath names a schedule in a path.
type SchedulePath struct {
	Schedule string `path:"schedule" example:"calendar-sync" maxLength:"64" doc:"The schedule's name."`
}

// ScopeQuery chooses schedules by account or tenant.
type ScopeQuery struct {
	Account string `query:"account" maxLength:"254" doc:"Only those of this account."`
	Tenant  string `query:"tenant" maxLength:"128" doc:"Only those of the accounts of this tenant."`
}

var (
	exampleLine = control.ScheduleLine{
		Schedule: jobs.ScheduleCalendar, SettingsOf: "tenant example.com", Spec: "0 9-17 * * 1-5", Zone: "Europe/Berlin", Accounts: 3,
		Next: exampleTime.Add(time.Hour), LastSlot: exampleTime, LastRun: exampleTime.Add(4 * time.Minute),
		Results: map[string]int{"completed": 3}, Runs: 27, CatchUps: 1, Missed: 2,
	}
	exampleRun    = control.ScheduledRun{Schedule: jobs.ScheduleCalendar, Account: "ann@example.com", Slot: exampleTime, Due: exampleTime.Add(4 * time.Minute), Spread: 3600}
	exampleScope  = jobs.ScheduleScope{Tenant: "example.com"}
	exampleRan    = control.ScheduleRun{Schedule: jobs.ScheduleCalendar, ScheduleScope: exampleScope, Accounts: 3, Asked: 2}
	examplePaused = control.SchedulePausing{Schedule: jobs.ScheduleCalendar, ScheduleScope: exampleScope, Changed: true, Paused: true}
)

// known finds the schedule that a path names.
func (p SchedulePath) known() (jobs.Schedule, error) {
	s, err := jobs.ParseSchedule(p.Schedule)
	if err != nil {
		return "", invalid(err)
	}
	return s, nil
}

func (a *API) addSchedules() {
	add(a, operation{
		ID: "list-schedules", Method: http.MethodGet, Path: "/schedules", Tag: tagSchedules,
		Summary: "List schedules", Description: "Lists the schedules, an item for all accounts whose settings are the same: when they run next, which slot ran last, what the work came to, what was missed, and what pauses them.",
		Errors: []int{http.StatusNotFound}, Example: Page[control.ScheduleLine]{Items: []control.ScheduleLine{exampleLine}},
	}, func(ctx context.Context, in *struct {
		ScopeQuery
		Paging
	}) (*Body[Page[control.ScheduleLine]], error) {
		skip := in.skip()
		all, err := a.control.Schedules(ctx, jobs.ScheduleScope{Account: in.Account, Tenant: in.Tenant})
		if err != nil {
			return nil, err
		}
		all = all[min(skip, len(all)):]
		return paged(in.Paging, all[:min(len(all), in.Limit+1)], func(control.ScheduleLine) string { return strconv.Itoa(skip + in.Limit) }), nil
	})
	add(a, operation{
		ID: "list-next-runs", Method: http.MethodGet, Path: "/schedules/{schedule}/next", Tag: tagSchedules,
		Summary: "List the next runs of a schedule", Description: "Lists what comes next of a schedule: its slots, in the zone of its specification, and when an account's runs are due after them. Runs that make up for missed ones are not among these.",
		Errors: []int{http.StatusNotFound}, Example: Page[control.ScheduledRun]{Items: []control.ScheduledRun{exampleRun}},
	}, func(ctx context.Context, in *struct {
		SchedulePath
		Account string `query:"account" maxLength:"254" doc:"As it holds for this account; for all without one."`
		Number  int    `query:"n" default:"10" minimum:"1" maximum:"1000" doc:"How many."`
	}) (*Body[Page[control.ScheduledRun]], error) {
		schedule, err := in.known()
		if err != nil {
			return nil, err
		}
		all, err := a.control.NextRuns(ctx, schedule, in.Account, in.Number)
		return &Body[Page[control.ScheduledRun]]{Page[control.ScheduledRun]{Items: append([]control.ScheduledRun{}, all...)}}, err
	})
	a.addScheduleSteering()
}

// ScopedRequest is a request to do something to a schedule.
type ScopedRequest struct {
	SchedulePath
	Body *jobs.ScheduleScope `required:"false"`
}

// read returns the schedule and the scope of the request.
func (r ScopedRequest) read() (schedule jobs.Schedule, scope jobs.ScheduleScope, err error) {
	if r.Body != nil {
		scope = *r.Body
	}
	schedule, err = r.known()
	return schedule, scope, err
}

func (a *API) addScheduleSteering() {
	c := a.control
	add(a, operation{
		ID: "run-schedule", Method: http.MethodPost, Path: "/schedules/{schedule}/run", Tag: tagSchedules,
		Summary: "Run a schedule now", Description: "Asks for the work of a schedule now, paused or not, for an account, a tenant's accounts or, without either, all. Its slots stay as they are. 409 says why there is nothing to ask for of an account.",
		Errors: []int{http.StatusNotFound, http.StatusConflict}, Request: exampleScope, Example: exampleRan,
	}, func(ctx context.Context, in *ScopedRequest) (*Body[control.ScheduleRun], error) {
		schedule, scope, err := in.read()
		if err != nil {
			return nil, err
		}
		ran, err := c.RunSchedule(ctx, schedule, scope)
		return &Body[control.ScheduleRun]{ran}, err
	})
	for _, verb := range []struct {
		name, summary, description string
		do                         func(context.Context, jobs.Schedule, jobs.ScheduleScope) (control.SchedulePausing, error)
	}{
		{"pause", "Pause a schedule", "Keeps a schedule from running for an account, a tenant's accounts or, without either, all, until it is resumed for the same.", c.PauseSchedule},
		{"resume", "Resume a schedule", "Ends the pause of a schedule that was made for the same; what else pauses it stays, and is named.", c.ResumeSchedule},
	} {
		add(a, operation{
			ID: verb.name + "-schedule", Method: http.MethodPost, Path: "/schedules/{schedule}/" + verb.name, Tag: tagSchedules,
			Summary: verb.summary, Description: verb.description + " To ask twice is fine.",
			Errors: []int{http.StatusNotFound}, Request: exampleScope, Example: examplePaused,
		}, func(ctx context.Context, in *ScopedRequest) (*Body[control.SchedulePausing], error) {
			schedule, scope, err := in.read()
			if err != nil {
				return nil, err
			}
			done, err := verb.do(ctx, schedule, scope)
			return &Body[control.SchedulePausing]{done}, err
		})
	}
}
