package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"headroom/internal/term"
	"headroom/jobs"
)

// filterFlags are the flags that name a part of a mailbox.
type filterFlags struct {
	after, before, zone string
	labels              []string
	query, maxSize      string
	spamTrash           bool
	first               int64
	format              string
}

// addFilterFlags gives a command the flags of a filter.
func addFilterFlags(cmd *cobra.Command) *filterFlags {
	f := &filterFlags{}
	flags := cmd.Flags()
	flags.StringVar(&f.after, "after", "", "only what was received at `TIME` or later, to the second: 2025-01-31 or 2025-01-31T12:00:00+01:00")
	flags.StringVar(&f.before, "before", "", "only what was received before `TIME`")
	flags.StringVar(&f.zone, "zone", "UTC", "the time `ZONE` in which a day begins that is given without a time, such as Europe/Berlin")
	flags.StringArrayVar(&f.labels, "label", nil, "only what has the label with the id `LABEL`; may be repeated, then all of them")
	flags.StringVar(&f.query, "query", "", "only what Gmail's search finds for `QUERY`")
	flags.BoolVar(&f.spamTrash, "spam-trash", false, "spam and trash too")
	flags.StringVar(&f.maxSize, "max-size", "", "only messages of at most `SIZE`, such as 10MB or 35MiB")
	flags.Int64Var(&f.first, "first", 0, "only the newest `N`; 0: all")
	flags.StringVar(&f.format, "format", string(jobs.FormatRaw), "`FORMAT` raw; full, which is what Gmail makes of the message and the content of its attachments; or metadata-first: headers and labels of all messages before any raw body")
	return f
}

// filter is what the flags say, in its normal form, or a usage error.
func (f *filterFlags) filter() (jobs.Filter, error) {
	zone, err := time.LoadLocation(f.zone)
	if err != nil {
		return jobs.Filter{}, usagef("--zone %s: no such time zone; name one such as Europe/Berlin, UTC or Local", f.zone)
	}
	filter := jobs.Filter{Labels: f.labels, Query: f.query, SpamTrash: f.spamTrash, First: f.first, Format: jobs.Format(f.format)}
	if filter.After, err = moment(f.after, zone); err != nil {
		return jobs.Filter{}, usagef("--after %w", err)
	}
	if filter.Before, err = moment(f.before, zone); err != nil {
		return jobs.Filter{}, usagef("--before %w", err)
	}
	if f.maxSize != "" {
		size, err := humanize.ParseBytes(f.maxSize)
		if err != nil || size == 0 || size > math.MaxInt64 {
			return jobs.Filter{}, usagef("--max-size %s is no size; give one such as 10MB or 35MiB", f.maxSize)
		}
		filter.MaxSize = int64(size)
	}
	if err := filter.Validate(); err != nil {
		return jobs.Filter{}, &usageError{err}
	}
	return filter.Normal(), nil
}

// moment reads a moment, or a day that begins in a zone; "" is none.
func moment(text string, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if t, err := time.Parse(term.TimeLayout, text); err == nil {
		return t, nil
	}
	t, err := time.ParseInLocation(time.DateOnly, text, zone)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s is no time; give a day such as 2025-01-31, or a moment such as 2025-01-31T12:00:00+01:00", text)
	}
	return t, nil
}

// filterText is a filter for people.
func filterText(f jobs.Filter) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if f.First > 0 {
		add("newest %d", f.First)
	}
	if !f.After.IsZero() {
		add("from %s", term.Time(f.After))
	}
	if !f.Before.IsZero() {
		add("before %s", term.Time(f.Before))
	}
	for _, label := range f.Labels {
		add("label %s", label)
	}
	if f.Query != "" {
		add("query %q", f.Query)
	}
	if f.MaxSize > 0 {
		add("at most %s", humanize.IBytes(uint64(f.MaxSize)))
	}
	if len(parts) == 0 {
		add("all mail")
	}
	if f.SpamTrash {
		add("with spam and trash")
	}
	if f.Format != "" {
		add("%s", f.Format)
	}
	return strings.Join(parts, ", ")
}
