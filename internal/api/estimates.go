package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"headroom/internal/control/estimate"
	"headroom/jobs"
	"headroom/quota/price"
)

// estimateTime bounds an estimate, some calls of which may wait for quota. The
// server cuts answers off at 30 s.
const estimateTime = 25 * time.Second

// estimateWanted is a backfill to estimate.
type estimateWanted struct {
	Account string      `json:"account" minLength:"1" maxLength:"254" doc:"The account's address."`
	Filter  jobs.Filter `json:"filter,omitzero" doc:"Which part of the mailbox; all of it without spam and trash if left out."`
	Sample  int         `json:"sample,omitempty" minimum:"0" maximum:"10" doc:"How many messages at most are asked for their sizes; 0: no bytes are estimated."`
}

func (a *API) addEstimate() {
	add(a, operation{
		ID: "estimate-backfill", Method: http.MethodPost, Path: "/estimates", Tag: tagBackfills,
		Summary:     "Say what a backfill would take, and start nothing",
		Description: "Messages, units by every price list, bytes and time. A few cheap calls ask Google, in the interactive lane.",
		Timeout:     estimateTime, Errors: []int{http.StatusNotFound, http.StatusBadGateway},
		Request: estimateWanted{Account: "ann@example.com", Filter: jobs.Filter{Labels: []string{"INBOX"}}, Sample: 10},
		Example: exampleEstimate(),
	}, func(ctx context.Context, in *Body[estimateWanted]) (*Body[estimate.Estimate], error) {
		if err := in.Body.Filter.Validate(); err != nil {
			return nil, invalid(err)
		}
		e, err := a.control.Estimate(ctx, in.Body.Account, in.Body.Filter, in.Body.Sample)
		return &Body[estimate.Estimate]{Body: e}, err
	})
}

func exampleEstimate() estimate.Estimate {
	exact := func(n int64) estimate.Figure {
		return estimate.Figure{Value: n, Least: n, Most: n, How: "counted by Google"}
	}
	return estimate.Estimate{
		Account: "ann@example.com", Project: "my-project", Filter: jobs.Filter{Labels: []string{"INBOX"}},
		Messages: exact(40_000), Known: exact(0), Fetch: exact(40_000),
		Bytes: &estimate.Figure{Value: 1_400_000_000, Least: 1_000_000_000, Most: 1_900_000_000, How: "from 10 messages"},
		Plan:  []estimate.Step{{For: "bodies", Method: "gmail.users.messages.get", Format: "raw", Calls: exact(40_000)}},
		Why:   fmt.Sprintf("the least units for format %s", jobs.FormatRaw),
		Prices: []estimate.Priced{{List: "gmail-2026-05", Own: true, Verified: true, Units: exact(800_400), DayUnits: 80_000_000, DayShare: 0.010005,
			Ceiling: 4800, Seconds: 10_005, BoundBy: price.UserMinute}},
		Spent: 21,
	}
}
