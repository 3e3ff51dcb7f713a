package quota_test

import (
	"strings"
	"testing"

	"headroom/quota"
	"headroom/quota/price"
)

// TestSettingsLeaveRoomForACall: what leaves a lane less than one call costs is
// named with the least value that would do, and that value does.
func TestSettingsLeaveRoomForACall(t *testing.T) {
	list := func(name string) *price.List {
		l, err := price.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	limited := func(units int64) *price.List { return gmailWith(t, units, 1_200_000) }
	dear, err := list("gmail-2026-05").WithCost("gmail.users.messages.get", "", 5000)
	if err != nil {
		t.Fatal(err)
	}
	change := func(user string, lane quota.Lane, limit string, key quota.Key, value float64) []quota.Change {
		return []quota.Change{{User: user, Lane: lane, Limit: limit, Key: key, Value: value}}
	}
	for _, tt := range []struct {
		name    string
		project quota.Project
		live    []quota.Change
		want    string // "": nothing is wrong
	}{
		{"the usual", quota.Project{Lists: []*price.List{list("gmail-2026-10"), list("calendar-2026-05")}}, nil, ""},
		{"a ceiling", quota.Project{Lists: []*price.List{list("gmail-2026-05")}}, change("", quota.Backfill, "", quota.KeyCeiling, 0.002),
			"backfill.ceiling 0.002 of user-minute leaves 12 of 6000 units, less than one call costs (gmail.users.threads.get: 40); the least is 0.0067"},
		{"the least ceiling", quota.Project{Lists: []*price.List{list("gmail-2026-05")}}, change("", quota.Backfill, "", quota.KeyCeiling, 0.0067), ""},
		{"a ceiling under dearer prices", quota.Project{Lists: []*price.List{list("gmail-2026-10")}}, change("", quota.Backfill, "", quota.KeyCeiling, 0.0067), "the least is 0.02"},
		{"a ceiling of one account", quota.Project{Lists: []*price.List{list("gmail-2026-05")}}, change("zoe@example.com", quota.Sync, "", quota.KeyCeiling, 0.001), "(for zoe@example.com)"},
		{"a ceiling of one limit", quota.Project{Lists: []*price.List{list("gmail-2026-05")}}, change("", quota.Interactive, "user-minute", quota.KeyCeiling, 0.001), "interactive.ceiling 0.001 of user-minute"},
		{"a ceiling in the file", quota.Project{Lists: []*price.List{list("gmail-2026-05")}, Changes: change("", quota.Backfill, "", quota.KeyCeiling, 0.002)}, nil, "the least is 0.0067"},
		{"a lane in the file", quota.Project{Lists: []*price.List{list("gmail-2026-05")}, Lanes: map[quota.Lane]quota.LaneSettings{quota.Sync: {Ceiling: 0.002}}}, nil, "sync.ceiling 0.002"},
		{"a pace", quota.Project{Lists: []*price.List{list("gmail-2026-05")}}, change("", quota.Backfill, "", quota.KeyPace, 0.001), "backfill.pace 0.001 of user-minute lets less than one call through in its time (gmail.users.threads.get: 40 of 4800 units); the least is 0.0084"},
		{"no pace", quota.Project{Lists: []*price.List{list("gmail-2026-05")}}, change("", quota.Backfill, "", quota.KeyPace, 0), ""},
		{"a floor", quota.Project{Lists: []*price.List{list("gmail-2026-05")}}, change("", quota.Backfill, "", quota.KeyFloor, 0.001), "backfill.floor 0.001 of user-minute"},
		{"a limit", quota.Project{Lists: []*price.List{limited(10)}}, nil, "limit user-minute: 10 units are less than one call costs (gmail.users.threads.get: 40); the least is 40"},
		{"a limit whose share is too small", quota.Project{Lists: []*price.List{limited(45)}}, nil, "backfill.ceiling 0.8 of user-minute leaves 36 of 45 units"},
		{"a price", quota.Project{Lists: []*price.List{dear}}, nil, "leaves 4800 of 6000 units, less than one call costs (gmail.users.messages.get: 5000); the least is 0.8334"},
		{"a budget", quota.Project{Lists: []*price.List{list("gmail-2026-05")}, Budgets: []price.Budget{{API: "gmail", Units: 30}}}, nil, "a day's budget of 30 units"},
		{"a calendar's ceiling", quota.Project{Lists: []*price.List{list("calendar-2026-05")}}, change("", quota.Sync, "", quota.KeyCeiling, 0.001), "the least is 0.0017"},
	} {
		live := map[string]quota.Live{}
		for _, l := range tt.project.Lists {
			live[l.API] = quota.Live{Revision: 1, Changes: tt.live}
		}
		err := tt.project.CheckRoom(live)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
