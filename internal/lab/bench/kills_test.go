package bench

import (
	"strings"
	"testing"

	"go.uber.org/zap"

	"headroom/jobs"
)

func TestKillsJudgement(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*KillsFigures)
		broken string
	}{
		{"all is well", func(*KillsFigures) {}, ""},
		{"ended too early", func(f *KillsFigures) { f.Kills = 12 }, "the backfills had ended after 12 kills of workers and 1 of Redis"},
		{"before Redis was killed", func(f *KillsFigures) { f.RedisKills = 0 }, "the backfills had ended after 20 kills of workers and 0 of Redis"},
		{"nobody at work was killed", func(f *KillsFigures) { f.TookOver = 0 }, "no kill met a worker at work"},
		{"a job failed", func(f *KillsFigures) { f.states[1] = jobs.Failed }, "a backfill is failed"},
		{"a message missing", func(f *KillsFigures) { f.Stored, f.Complete = 99, false }, "99 of 100 messages were stored"},
		{"one that differs", func(f *KillsFigures) { f.Identical = 98 }, "98 of 100 messages are identical"},
		{"one that is there twice", func(f *KillsFigures) { f.Doubled = 1 }, "1 messages were stored or counted twice"},
		{"many fetched again", func(f *KillsFigures) { f.Refetch = 0.06 }, "0.06 of the messages were fetched again, at most 0.05 may be"},
		{"progress that falls", func(f *KillsFigures) { f.WentDown = 3 }, "progress went down 3 times"},
		{"archived tasks", func(f *KillsFigures) { f.Archived = 2 }, "2 tasks were archived"},
		{"refused", func(f *KillsFigures) { f.Refused = 4 }, "Google refused 4 calls, 0 limits were exceeded"},
		{"over the limit", func(f *KillsFigures) { f.Over = 1 }, "Google refused 0 calls, 1 limits were exceeded"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := &KillsFigures{Messages: 100, Stored: 100, Complete: true, Identical: 100, Refetch: 0.05, Kills: 20, TookOver: 9, RedisKills: 1,
				states: []jobs.State{jobs.Completed, jobs.Completed}}
			test.change(f)
			if got := f.Broken(); got != test.broken {
				t.Errorf("broken: %q, want %q", got, test.broken)
			}
		})
	}
	if broken := (&KillsFigures{}).Broken(); broken != "nothing was measured" {
		t.Errorf("an empty run is broken by %q", broken)
	}
}

func TestKillsNeedsARedisOfItsOwn(t *testing.T) {
	if _, err := kills(t.Context(), Options{Redis: realRedis.URL(), Log: zap.NewNop()}); err == nil || !strings.Contains(err.Error(), "leave out --redis") {
		t.Errorf("with somebody's Redis: %v, want it refused", err)
	}
}

func TestAProgressThatFallsIsSeen(t *testing.T) {
	w := &progressWatch{all: map[string]jobs.Job{}}
	for _, step := range []struct {
		stored, listed, want int64
	}{{0, 10, 0}, {4, 10, 0}, {4, 10, 0}, {3, 10, 1}, {5, 10, 1}, {5, 9, 2}} {
		w.look([]jobs.Job{{ID: "a", Progress: jobs.Progress{Stored: step.stored, Listed: step.listed}}})
		if w.wentDown != step.want {
			t.Errorf("after %+v it went down %d times, want %d", step, w.wentDown, step.want)
		}
	}
}
