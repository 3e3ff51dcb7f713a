package google

import (
	"errors"
	"fmt"
	"testing"

	"headroom/internal/lab/fakegoogle"
	"headroom/jobs"
)

func TestTotalsOfAMailboxAndOfItsLabels(t *testing.T) {
	_, box, url := newFake(t, fakegoogle.Options{})
	for i := range 7 {
		labels := []string{"INBOX"}
		if i < 2 {
			labels = []string{"SPAM"}
		}
		box.Add(fmt.Appendf(nil, "Subject: %d\r\nMessage-ID: <%d@example.com>\r\n\r\nbody\r\n", i, i), labels...)
	}
	m := open(t, newTestGoogle(t, Options{Endpoint: url}))
	messages, threads, err := m.Totals(t.Context())
	if err != nil || messages != 7 || threads != 7 {
		t.Errorf("Totals = %d messages, %d threads, %v, want 7 and 7", messages, threads, err)
	}
	for label, want := range map[string]int64{"INBOX": 5, "SPAM": 2, "TRASH": 0} {
		if got, err := m.LabelTotal(t.Context(), label); err != nil || got != want {
			t.Errorf("LabelTotal(%s) = %d, %v, want %d", label, got, err, want)
		}
	}
	_, err = m.LabelTotal(t.Context(), "Label_404")
	if call, ok := errors.AsType[*jobs.CallError](err); !ok || call.Class != jobs.ClassSearch {
		t.Errorf("LabelTotal of no label: %v, want class %s", err, jobs.ClassSearch)
	}
}
