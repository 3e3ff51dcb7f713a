package app

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"headroom/internal/api"
	"headroom/internal/store/sqlite"
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

// quotaReader reads with what the process has open.
func (b apiBackend) quotaReader(ctx context.Context, in QuotaAsked) (r *QuotaReader, err error) {
	r = &QuotaReader{store: b.store, ledger: b.ledger}
	if r.projects, err = Projects(b.cfg); err != nil {
		return nil, err
	}
	if r.subject, err = r.find(ctx, b.cfg, in.Name, in.Project); err != nil {
		return nil, err
	}
	return r, b.redisAnswers(ctx)
}

func (b apiBackend) addQuota(a *api.API) {
	api.Add(a, api.Operation{
		ID: "show-quota", Method: http.MethodGet, Path: "/quota/{name}", Tag: tagQuota,
		Summary: "Show how full the quota is, by whom, and who waits for what", Description: "It charges nothing.",
		Errors: []int{http.StatusNotFound}, Example: exampleQuota(),
	}, func(ctx context.Context, in *QuotaAsked) (*api.Body[QuotaState], error) {
		r, err := b.quotaReader(ctx, *in)
		if err != nil {
			return nil, err
		}
		state, err := r.State(ctx)
		return &api.Body[QuotaState]{Body: state}, err
	})
	type explain struct {
		QuotaAsked
		Last int `query:"last" default:"20" minimum:"1" maximum:"500" doc:"How many decisions, the newest."`
	}
	state := exampleQuota()
	api.Add(a, api.Operation{
		ID: "explain-quota", Method: http.MethodGet, Path: "/quota/{name}/explain", Tag: tagQuota,
		Summary: "Tell the last decisions about an account, and why", Description: "The newest come last. It charges nothing.",
		Errors: []int{http.StatusNotFound},
		Example: QuotaStory{At: state.At, Account: state.Account, Project: state.Project, APIs: state.APIs, Notes: []quota.Note{{
			At: state.At, Last: state.At, API: "gmail", Kind: quota.NoteRefused, Lane: quota.Backfill, Calls: 3, Cost: 20,
			Limit: price.UserMinute, Bound: quota.BoundPace, Used: 4700, Ceiling: 4800, Wait: time.Second, Until: state.At.Add(time.Second),
		}}},
	}, func(ctx context.Context, in *explain) (*api.Body[QuotaStory], error) {
		r, err := b.quotaReader(ctx, in.QuotaAsked)
		if err != nil {
			return nil, err
		}
		if !r.IsAccount() {
			return nil, refusef("%s is no account; for a project ask for %s/quota/%s", in.Name, api.Path, in.Name)
		}
		story, err := r.Story(ctx, in.Last)
		return &api.Body[QuotaStory]{Body: story}, err
	})
	b.addQuotaSettings(a)
	// Notes write themselves, with one thing more than the type has.
	note := a.OpenAPI().Components.Schemas.Map()["Note"]
	note.Properties["wait_seconds"] = &huma.Schema{Type: huma.TypeNumber, Description: "The longest that one of them was told to wait."}
}

// quotaChanges is what was ever set.
type quotaChanges struct {
	Changes []sqlite.Setting `json:"changes" nullable:"false" doc:"All changes, the oldest first. Of an API, the last one holds."`
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
func (w settingsWanted) request(target string) (QuotaRequest, error) {
	r := QuotaRequest{Target: target, API: w.API, Prices: w.Prices, Limit: w.Limit}
	if w.API != "" && w.Prices != "" {
		return r, refusef("prices names an API already; leave out api")
	}
	for _, key := range slices.Sorted(maps.Keys(w.Set)) {
		e, err := ParseQuotaEdit(fmt.Sprintf("%s=%v", key, w.Set[key]), false)
		if err != nil {
			return r, &RefusedError{err}
		}
		r.Edits = append(r.Edits, e)
	}
	for _, key := range w.Unset {
		e, err := ParseQuotaEdit(key, true)
		if err != nil {
			return r, &RefusedError{err}
		}
		r.Edits = append(r.Edits, e)
	}
	if len(r.Edits) == 0 {
		return r, refusef("nothing to set; name keys in set or in unset")
	}
	return r, nil
}

func (b apiBackend) addQuotaSettings(a *api.API) {
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	api.Add(a, api.Operation{
		ID: "list-quota-settings", Method: http.MethodGet, Path: "/quota/{name}/settings", Tag: tagQuota,
		Summary: "List who changed the lanes' settings, and when", Description: "Of a project, or of one account.",
		Errors: []int{http.StatusNotFound},
		Example: quotaChanges{[]sqlite.Setting{{
			Project: "my-project", API: "gmail", Revision: 1, At: at, Who: "ann@host", Change: "mode=adaptive (was default)",
			Live: []byte(`{"revision":1,"mode":"adaptive"}`),
		}}},
	}, func(ctx context.Context, in *QuotaPath) (*api.Body[quotaChanges], error) {
		history, err := QuotaHistory(ctx, b.cfg, in.Name, b.opts.Log)
		return &api.Body[quotaChanges]{Body: quotaChanges{append([]sqlite.Setting{}, history...)}}, err
	})
	type set struct {
		QuotaPath
		Body settingsWanted
	}
	api.Add(a, api.Operation{
		ID: "set-quota-settings", Method: http.MethodPut, Path: "/quota/{name}/settings", Tag: tagQuota,
		Summary: "Change how much each lane may use",
		Description: "Changes the keys that are named, for a project or one account; the others stay. It holds in every process with its next decision. " +
			"When Redis does not answer, unpublished says why; running processes go by it once Redis is back.",
		Errors:  []int{http.StatusNotFound},
		Request: settingsWanted{Set: map[string]any{"backfill.ceiling": 0.5}},
		Example: QuotaSet{
			QuotaScope: QuotaScope{Project: "my-project", Account: "ann@example.com"},
			APIs:       []QuotaAPISet{{API: "gmail", Revision: 2, Changed: true, Values: []QuotaValue{{Key: "backfill.ceiling", Old: 0.8, New: 0.5}}}},
		},
	}, func(ctx context.Context, in *set) (*api.Body[QuotaSet], error) {
		r, err := in.Body.request(in.Name)
		if err != nil {
			return nil, err
		}
		r.Who = "HTTP interface of " + whoami()
		done, err := SetQuota(ctx, b.cfg, r, b.opts.Log)
		return &api.Body[QuotaSet]{Body: done}, err
	})
}

func exampleQuota() QuotaState {
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	return QuotaState{
		At: at, Account: "ann@example.com", Project: "my-project",
		APIs: []APIQuota{{
			API: "gmail", Prices: "gmail-2026-05",
			Windows: []QuotaWindow{{
				Limit: price.UserMinute, Per: "user", Units: 6000, Used: 4700,
				Spent: map[quota.Lane]int64{quota.Backfill: 4700, quota.Interactive: 0, quota.Sync: 0},
				Lanes: []LaneQuota{{Lane: quota.Backfill, Ceiling: 4800, Left: 100, Source: "default"}},
			}},
			User: &ScopeQuota{Share: 1}, OfAll: ScopeQuota{Share: 1}, Waiting: []quota.Note{},
		}},
		Jobs: []WaitingJob{{ID: "backfill:ann@example.com", Account: "ann@example.com", For: price.UserMinute, Until: at.Add(time.Second)}},
	}
}
