package api

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"headroom/internal/control"
	"headroom/internal/control/quotaview"
	"headroom/quota"
	"headroom/quota/price"
)

const tagQuota = "quota"

// QuotaPath names what is asked about. It is exported, as huma skips embedded types
// that are not.
type QuotaPath struct {
	Name string `path:"name" maxLength:"254" example:"ann@example.com" doc:"An account's address, or a Google Cloud project by its name in the settings."`
}

// QuotaAsked is whose quota is asked about.
type QuotaAsked struct {
	QuotaPath
	Project string `query:"project" maxLength:"254" doc:"The account's Google Cloud project, if the store does not know the account."`
}

func (a *API) addQuota() {
	add(a, operation{
		ID: "show-quota", Method: http.MethodGet, Path: "/quota/{name}", Tag: tagQuota,
		Summary: "Show how full the quota is, by whom, and who waits for what", Description: "It charges nothing.",
		Errors: []int{http.StatusNotFound}, Example: exampleQuota(),
	}, func(ctx context.Context, in *QuotaAsked) (*Body[quotaview.QuotaState], error) {
		r, err := a.control.Quota(ctx, in.Name, in.Project)
		if err != nil {
			return nil, err
		}
		state, err := r.State(ctx)
		return &Body[quotaview.QuotaState]{Body: state}, err
	})
	type explain struct {
		QuotaAsked
		Last int `query:"last" default:"20" minimum:"1" maximum:"500" doc:"How many decisions, the newest."`
	}
	state := exampleQuota()
	add(a, operation{
		ID: "explain-quota", Method: http.MethodGet, Path: "/quota/{name}/explain", Tag: tagQuota,
		Summary: "Tell the last decisions about an account, and why", Description: "The newest come last. It charges nothing.",
		Errors: []int{http.StatusNotFound},
		Example: quotaview.QuotaStory{At: state.At, Account: state.Account, Project: state.Project, APIs: state.APIs, Notes: []quota.Note{{
			At: state.At, Last: state.At, API: "gmail", Kind: quota.NoteRefused, Lane: quota.Backfill, Calls: 3, Cost: 20,
			Limit: price.UserMinute, Bound: quota.BoundPace, Used: 4700, Ceiling: 4800, Wait: time.Second, Until: state.At.Add(time.Second),
		}}},
	}, func(ctx context.Context, in *explain) (*Body[quotaview.QuotaStory], error) {
		r, err := a.control.Quota(ctx, in.Name, in.Project)
		if err != nil {
			return nil, err
		}
		if !r.IsAccount() {
			return nil, control.Errorf(control.Refused, "%s is no account; for a project ask for %s/quota/%s", in.Name, Path, in.Name)
		}
		story, err := r.Story(ctx, in.Last)
		return &Body[quotaview.QuotaStory]{Body: story}, err
	})
	a.addQuotaSettings()
	// Notes write themselves, with one thing more than the type has.
	note := a.huma.OpenAPI().Components.Schemas.Map()["Note"]
	note.Properties["wait_seconds"] = &huma.Schema{Type: huma.TypeNumber, Description: "The longest that one of them was told to wait."}
}

// quotaChanges is what was ever set.
type quotaChanges struct {
	Changes []control.Setting `json:"changes" nullable:"false" doc:"All changes, the oldest first. Of an API, the last one holds."`
}

// settingsWanted are settings that somebody wants.
type settingsWanted struct {
	API    string         `json:"api,omitempty" doc:"One API only, gmail or calendar; all that have the limit if left out."`
	Prices string         `json:"prices,omitempty" doc:"The API of one of the project's price lists only."`
	Limit  string         `json:"limit,omitempty" doc:"One limit only, such as user-minute."`
	Set    map[string]any `json:"set,omitempty" doc:"Values by key: mode, or of a lane interactive, sync or backfill: LANE.ceiling, LANE.pace, LANE.in_flight, backfill.floor."`
	Unset  []string       `json:"unset,omitempty" nullable:"false" doc:"Keys for which the project's or the mode's value is to hold again."`
}

// request turns it into what the command asks for.
func (w settingsWanted) request(target string) (control.QuotaRequest, error) {
	r := control.QuotaRequest{Target: target, API: w.API, Prices: w.Prices, Limit: w.Limit}
	if w.API != "" && w.Prices != "" {
		return r, control.Errorf(control.Refused, "prices names an API already; leave out api")
	}
	for _, key := range slices.Sorted(maps.Keys(w.Set)) {
		e, err := control.ParseQuotaEdit(fmt.Sprintf("%s=%v", key, w.Set[key]), false)
		if err != nil {
			return r, invalid(err)
		}
		r.Edits = append(r.Edits, e)
	}
	for _, key := range w.Unset {
		e, err := control.ParseQuotaEdit(key, true)
		if err != nil {
			return r, invalid(err)
		}
		r.Edits = append(r.Edits, e)
	}
	if len(r.Edits) == 0 {
		return r, control.Errorf(control.Refused, "nothing to set; name keys in set or in unset")
	}
	return r, nil
}

func (a *API) addQuotaSettings() {
	at := exampleTime
	add(a, operation{
		ID: "list-quota-settings", Method: http.MethodGet, Path: "/quota/{name}/settings", Tag: tagQuota,
		Summary: "List who changed the lanes' settings, and when", Description: "Of a project, or of one account.",
		Errors: []int{http.StatusNotFound},
		Example: quotaChanges{[]control.Setting{{
			Project: "my-project", API: "gmail", Revision: 1, At: at, Who: "ann@host", Change: "mode=adaptive (was default)",
			Live: []byte(`{"revision":1,"mode":"adaptive"}`),
		}}},
	}, func(ctx context.Context, in *QuotaPath) (*Body[quotaChanges], error) {
		history, err := a.control.QuotaHistory(ctx, in.Name)
		return &Body[quotaChanges]{Body: quotaChanges{append([]control.Setting{}, history...)}}, err
	})
	type set struct {
		QuotaPath
		Body settingsWanted
	}
	add(a, operation{
		ID: "set-quota-settings", Method: http.MethodPut, Path: "/quota/{name}/settings", Tag: tagQuota,
		Summary: "Change how much each lane may use",
		Description: "Changes the keys that are named, for a project or one account; the others stay. It holds in every process with its next decision. " +
			"When Redis does not answer, unpublished says why; running processes go by it once Redis is back.",
		Errors:  []int{http.StatusNotFound},
		Request: settingsWanted{Set: map[string]any{"backfill.ceiling": 0.5}},
		Example: control.QuotaSet{
			QuotaScope: control.QuotaScope{Project: "my-project", Account: "ann@example.com"},
			APIs:       []control.QuotaAPISet{{API: "gmail", Revision: 2, Changed: true, Values: []control.QuotaValue{{Key: "backfill.ceiling", Old: 0.8, New: 0.5}}}},
		},
	}, func(ctx context.Context, in *set) (*Body[control.QuotaSet], error) {
		r, err := in.Body.request(in.Name)
		if err != nil {
			return nil, err
		}
		r.Who = "HTTP interface of " + control.Whoami()
		done, err := a.control.SetQuota(ctx, r)
		return &Body[control.QuotaSet]{Body: done}, err
	})
}

func exampleQuota() quotaview.QuotaState {
	at := exampleTime
	return quotaview.QuotaState{
		At: at, Account: "ann@example.com", Project: "my-project",
		APIs: []quotaview.APIQuota{{
			API: "gmail", Prices: "gmail-2026-05",
			Windows: []quotaview.QuotaWindow{{
				Limit: price.UserMinute, Per: "user", Units: 6000, Used: 4700,
				Spent: map[quota.Lane]int64{quota.Backfill: 4700, quota.Interactive: 0, quota.Sync: 0},
				Lanes: []quotaview.LaneQuota{{Lane: quota.Backfill, Ceiling: 4800, Left: 100, Source: "default"}},
			}},
			User: &quotaview.ScopeQuota{Share: 1}, OfAll: quotaview.ScopeQuota{Share: 1}, Waiting: []quota.Note{},
		}},
		Jobs: []quotaview.WaitingJob{{ID: "backfill:ann@example.com", Account: "ann@example.com", For: price.UserMinute, Until: at.Add(time.Second)}},
	}
}
