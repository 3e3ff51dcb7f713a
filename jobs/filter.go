package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// Format says what of a message a backfill brings, and in which order.
type Format string

// The formats.
const (
	FormatRaw           Format = "raw"            // the message, byte for byte
	FormatFull          Format = "full"           // Google's answer as it parses the message, and the content of each attachment
	FormatMetadataFirst Format = "metadata-first" // headers and labels of all messages, then the bodies
)

// Formats lists all formats.
var Formats = []Format{FormatRaw, FormatFull, FormatMetadataFirst}

// A Filter says which part of a mailbox a backfill brings. The zero value: all of
// it, without spam and trash, in format raw.
type Filter struct {
	After     time.Time `json:"after,omitzero"`  // received at this moment or later, to the second
	Before    time.Time `json:"before,omitzero"` // received before this moment
	Labels    []string  `json:"labels,omitempty"`
	Query     string    `json:"query,omitempty"` // in Gmail's search syntax
	SpamTrash bool      `json:"spam_trash,omitempty"`
	MaxSize   int64     `json:"max_size,omitempty"` // of the raw message, in bytes; 0: any
	First     int64     `json:"first,omitempty"`    // only the newest so many; 0: all
	Format    Format    `json:"format,omitempty"`   // FormatRaw if empty
}

// Normal returns the filter in the one form that all filters which mean the same
// have.
func (f Filter) Normal() Filter {
	f.After, f.Before = f.After.UTC().Truncate(time.Second), f.Before.UTC().Truncate(time.Second)
	f.Query = strings.TrimSpace(f.Query)
	f.Labels = slices.Compact(slices.Sorted(slices.Values(f.Labels)))
	if len(f.Labels) == 0 {
		f.Labels = nil
	}
	if f.Format == FormatRaw {
		f.Format = ""
	}
	return f
}

// Whole reports whether the filter lets every message through, spam and trash
// aside.
func (f Filter) Whole() bool {
	f = f.Normal()
	f.Format, f.SpamTrash = "", false
	text, _ := json.Marshal(f)
	return string(text) == "{}"
}

// Bodies is the format of the bodies that the filter's backfill brings: full, or
// "" for raw.
func (f Filter) Bodies() Format {
	if f.Format == FormatFull {
		return FormatFull
	}
	return ""
}

// ByThread reports whether whole threads can serve the filter's backfill: in format
// full, and for metadata. Google gives no raw messages of a thread.
func (f Filter) ByThread() bool {
	return f.Format == FormatFull || f.Format == FormatMetadataFirst
}

// Validate reports everything that is wrong with the filter.
func (f Filter) Validate() error {
	var problems []error
	if !f.After.IsZero() && !f.Before.IsZero() && !f.After.Before(f.Before) {
		problems = append(problems, fmt.Errorf("after %s is not before %s", f.After.Format(time.RFC3339), f.Before.Format(time.RFC3339)))
	}
	if f.MaxSize < 0 {
		problems = append(problems, errors.New("the largest size is negative"))
	}
	if f.First < 0 {
		problems = append(problems, errors.New("the number of messages is negative"))
	}
	if f.Format != "" && !slices.Contains(Formats, f.Format) {
		problems = append(problems, fmt.Errorf("unknown format %q; there are %v", f.Format, Formats))
	}
	if slices.Contains(f.Labels, "") {
		problems = append(problems, errors.New("an empty label"))
	}
	return errors.Join(problems...)
}

// A Search says which messages a listing names: those that have all the labels,
// and match the query in Gmail's syntax.
type Search struct {
	Labels    []string
	Query     string
	SpamTrash bool
}

const (
	// loose is how far a date in Gmail's search may be off.
	loose = 24 * time.Hour
	// looseSize and one eighth is how far a size may be.
	looseSize = 16 << 10
)

// Search returns the listing of which the filter's messages are a part. Dates
// and sizes in it are loose, by more than Gmail is; [Filter.Lets] is exact.
func (f Filter) Search() Search {
	var terms []string
	if f.Query != "" {
		terms = append(terms, grouped(f.Query))
	}
	if !f.After.IsZero() {
		terms = append(terms, fmt.Sprintf("after:%d", max(0, f.After.Add(-loose).Unix())))
	}
	if !f.Before.IsZero() {
		terms = append(terms, fmt.Sprintf("before:%d", max(0, f.Before.Add(loose).Unix())))
	}
	if f.MaxSize > 0 {
		terms = append(terms, fmt.Sprintf("smaller:%d", f.MaxSize+f.MaxSize/8+looseSize))
	}
	return Search{Labels: f.Labels, Query: strings.Join(terms, " "), SpamTrash: f.SpamTrash}
}

// grouped puts a query with alternatives into brackets, so that what is added
// holds for all of them.
func grouped(query string) string {
	if slices.Contains(strings.Fields(query), "OR") || strings.Contains(query, "|") {
		return "(" + query + ")"
	}
	return query
}

// Lets reports whether a message of this date and size, in bytes, passes the
// filter's dates and sizes.
func (f Filter) Lets(date time.Time, size int64) bool {
	switch {
	case !f.After.IsZero() && date.Before(f.After),
		!f.Before.IsZero() && !date.Before(f.Before),
		f.MaxSize > 0 && size > f.MaxSize:
		return false
	}
	return true
}

// BackfillID is the id of the backfill of an account with this filter.
func (f Filter) BackfillID(email string) string {
	id := "backfill:" + FoldAddress(email)
	text, _ := json.Marshal(f.Normal())
	if string(text) == "{}" {
		return id
	}
	sum := fnv.New64a()
	sum.Write(text)
	return fmt.Sprintf("%s:%012x", id, sum.Sum64()&(1<<48-1))
}
