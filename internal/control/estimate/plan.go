package estimate

import (
	"fmt"

	"headroom/jobs"
	"headroom/quota/price"
	"headroom/workers"
)

// A Call is one kind of call that a backfill makes for messages, and what it costs.
type Call struct {
	For    string `json:"for"`
	Method string `json:"method"`
	Format string `json:"format,omitempty"`
	Units  int64  `json:"units"`
	// From is how many of a thread's messages must be wanted for the call to be made
	// in place of one for each of them; 0: it is not about threads.
	From int `json:"from,omitempty"`
}

// A Plan is how a backfill gets its messages, for the least units.
type Plan struct {
	Prices string `json:"prices"` // the list that it is made by
	Calls  []Call `json:"calls"`
	Why    string `json:"why"`
}

// PlanOf is the plan of a backfill by a price list; nil has none.
func PlanOf(list *price.List, f jobs.Filter) Plan {
	if list == nil {
		return Plan{}
	}
	p := Plan{Prices: list.Name, Why: whyThisPlan(list, f.Format)}
	add := func(what, method, format string, from int) {
		units, _ := list.Cost("gmail.users."+method, format)
		p.Calls = append(p.Calls, Call{what, method, format, units, from})
	}
	if f.ByThread() {
		what, format := "labels and headers", workers.GetFormat(f.Format)
		if f.Format == jobs.FormatFull {
			what = "messages as Gmail parses them"
		}
		if from := workers.ThreadsFrom(list, f.Format); from > 0 {
			add(what, "threads.get", format, from)
		}
		add(what, "messages.get", format, 0)
	}
	if f.Format == jobs.FormatFull {
		add("the content of each attachment", "messages.attachments.get", "", 0)
	} else {
		add("raw messages", "messages.get", "raw", 0)
	}
	return p
}

// whyThisPlan explains why no other calls than the format's are cheaper.
func whyThisPlan(list *price.List, f jobs.Format) string {
	if list == nil {
		return ""
	}
	page, _ := list.Cost("gmail.users.messages.list", "")
	text := fmt.Sprintf("A page of 500 ids costs %d units, so that known messages cost next to nothing.", page)
	if !(jobs.Filter{Format: f}).ByThread() {
		return text + " Raw messages come from messages.get only: threads.get has no format raw."
	}
	if f == jobs.FormatMetadataFirst {
		text += " Raw messages come from messages.get only."
	}
	format := workers.GetFormat(f)
	one, _ := list.Cost(workers.MethodMessage, format)
	many, _ := list.Cost(workers.MethodThread, format)
	text += fmt.Sprintf(" In format %s, threads.get costs %d units and messages.get %d", format, many, one)
	if from := workers.ThreadsFrom(list, f); from > 0 {
		text += fmt.Sprintf(": a thread is got as a whole from %d messages to fetch on", from)
	}
	if !list.Costs[workers.MethodThread].Verified {
		text += ", by a price that Google's own page was not seen to state, and that may be half as much again without making this dearer"
	}
	return text + "."
}
