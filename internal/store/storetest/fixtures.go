package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"headroom/jobs"
)

const (
	ann  = "ann@example.com"
	hour = time.Hour
)

// must stops the test on an error.
func must[V any](t testing.TB) func(v V, err error) V {
	return func(v V, err error) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// claimed returns a store in which ann's backfill is claimed.
func claimed(t *T) (Store, jobs.Job) {
	t.Helper()
	s := fresh(t)
	return s, start(t, s)
}

// start claims ann's backfill.
func start(t *T, s Store) jobs.Job {
	t.Helper()
	if err := s.AddAccount(t.Context(), jobs.Account{Email: ann, Project: "prod"}); err != nil && !errors.Is(err, jobs.ErrExists) {
		t.Fatal(err)
	}
	job, _, err := s.StartBackfill(t.Context(), ann, jobs.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return must[jobs.Job](t)(s.Claim(t.Context(), job.Ref(), hour))
}

// ids are n message ids, newest first as Gmail lists them.
func ids(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("18c%08x", n-i)
	}
	return all
}

func message(id string, history uint64) *jobs.Message {
	return &jobs.Message{
		Account: ann, ID: id, ThreadID: "t" + id, HistoryID: history,
		InternalDate: time.UnixMilli(1767225600123).UTC(), Labels: []string{"INBOX", "UNREAD"},
		Size: 100, SHA256: strings.Repeat("ab", 32), Subject: "Grüße", ParseStatus: jobs.Parsed,
	}
}

func stored(id string) jobs.Result {
	return jobs.Result{ID: id, Outcome: jobs.ItemStored, Message: message(id, 7)}
}
