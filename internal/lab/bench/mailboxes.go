package bench

import (
	"fmt"
	"time"

	"headroom/internal/lab/fakegoogle"
	"headroom/jobs"
)

// A pricedMailbox is a mailbox and the filter of its backfill.
type pricedMailbox struct {
	name     string
	messages int // made up
	spam     int // every so many of them lies in spam, and as many in trash; 0: none
	before   jobs.Filter
	filter   jobs.Filter
}

func (m pricedMailbox) email() string { return m.name + "@example.com" }

// nothing is a filter that lets no message through.
var nothing = jobs.Filter{Query: "subject:nothingofthekind"}

// pricedMailboxes are five, of an n-th of their size, which differ in how their cost
// is estimated.
func pricedMailboxes(n int) []pricedMailbox {
	day := func(days int) time.Time { return time.Date(2025, time.January, 6+days, 12, 0, 0, 0, time.UTC) }
	return []pricedMailbox{
		{name: "labels", messages: 1400 / n, before: nothing, filter: jobs.Filter{Labels: []string{"INBOX"}}},
		{name: "spam", messages: 750 / n, spam: 10, before: nothing},
		{name: "filters", messages: 1600 / n, before: nothing,
			filter: jobs.Filter{After: day(1), Before: day(1 + 20/n), Query: "-in:sent"}},
		{name: "stored", messages: 750 / n, before: jobs.Filter{First: int64(200 / n)}},
		{name: "metadata", messages: 320 / n, before: nothing, filter: jobs.Filter{Format: jobs.FormatMetadataFirst}},
	}
}

// fill makes the mailbox.
func (m pricedMailbox) fill(fake *fakegoogle.Server) error {
	if err := fake.Load(m.email(), fmt.Sprintf("generate:%d", m.messages)); err != nil {
		return err
	}
	if m.spam == 0 {
		return nil
	}
	box := fake.Mailbox(m.email())
	for i, message := range box.Messages() {
		switch i % m.spam {
		case 0:
			box.Spam(message.ID)
		case 1:
			box.Trash(message.ID)
		}
	}
	return nil
}
