package control

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"headroom/config"
	"headroom/jobs"
	"headroom/quota"
)

func TestErrorsHaveAKind(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want Kind
	}{
		"nobody's":             {errors.New("broken"), Unexpected},
		"one of ours":          {Errorf(Conflict, "paused"), Conflict},
		"one of ours, wrapped": {fmt.Errorf("account ann: %w", refusef("no project")), Refused},
		"a missing row":        {jobs.ErrNotFound, NotFound},
		"an account again":     {fmt.Errorf("%w; start its backfill", jobs.ErrExists), Conflict},
		"a job's state":        {&jobs.StateError{}, Conflict},
		"a refusal of Google":  {fmt.Errorf("list: %w", &jobs.CallError{Class: jobs.ClassItem}), Google},
		"a wait for quota":     {&quota.DeniedError{}, Unavailable},
		"no Redis":             {fmt.Errorf("%w: gone", quota.ErrUnavailable), Unavailable},
		"wrong settings":       {&config.InvalidError{}, Settings},
		"no time left":         {context.DeadlineExceeded, Timeout},
	} {
		if got := KindOf(tc.err); got != tc.want {
			t.Errorf("%s: kind %d, want %d", name, got, tc.want)
		}
	}
}

func TestAHintFollowsTheError(t *testing.T) {
	err := missing("add it with: headroom account add ann", "unknown account %s", "ann")
	if got, want := err.Error(), "unknown account ann; add it with: headroom account add ann"; got != want {
		t.Errorf("Error = %q, want %q", got, want)
	}
	if !errors.Is(err, jobs.ErrNotFound) || errors.Is(refusef("no"), jobs.ErrNotFound) {
		t.Error("only an error of kind NotFound matches jobs.ErrNotFound")
	}
}
