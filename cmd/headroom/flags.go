package main

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"headroom/internal/term"
	"headroom/jobs"
)

// spanFlags are two flags that name moments, and one for the zone of days.
type spanFlags struct {
	after, before, zone string
	names               [2]string // of the two flags
}

func addSpanFlags(cmd *cobra.Command, after, afterUsage, before, beforeUsage string) *spanFlags {
	f := &spanFlags{names: [2]string{"--" + after, "--" + before}}
	flags := cmd.Flags()
	flags.StringVar(&f.after, after, "", afterUsage+": 2025-01-31 or 2025-01-31T12:00:00+01:00")
	flags.StringVar(&f.before, before, "", beforeUsage)
	flags.StringVar(&f.zone, "zone", "UTC", "the time `ZONE` in which a day begins that is given without a time, such as Europe/Berlin")
	return f
}

// moments returns the two moments; zero for a flag that is not given.
func (f *spanFlags) moments() (after, before time.Time, err error) {
	zone, err := time.LoadLocation(f.zone)
	if err != nil {
		return after, before, usagef("--zone %s: no such time zone; name one such as Europe/Berlin, UTC or Local", f.zone)
	}
	if after, err = moment(f.after, zone); err != nil {
		return after, before, usagef("%s %w", f.names[0], err)
	}
	if before, err = moment(f.before, zone); err != nil {
		return after, before, usagef("%s %w", f.names[1], err)
	}
	return after, before, nil
}

// moment parses a moment, or a day as its beginning in a zone; "" is the zero time.
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

// filterFlags are the flags that name a part of a mailbox.
type filterFlags struct {
	*spanFlags
	labels         []string
	query, maxSize string
	spamTrash      bool
	first          int64
	format         string
}

// addFilterFlags gives a command the flags of a filter.
func addFilterFlags(cmd *cobra.Command) *filterFlags {
	f := &filterFlags{spanFlags: addSpanFlags(cmd,
		"after", "only what was received at `TIME` or later, to the second", "before", "only what was received before `TIME`")}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.labels, "label", nil, "only what has the label with the id `LABEL`; may be repeated, then all of them")
	flags.StringVar(&f.query, "query", "", "only what Gmail's search finds for `QUERY`")
	flags.BoolVar(&f.spamTrash, "spam-trash", false, "spam and trash too")
	flags.StringVar(&f.maxSize, "max-size", "", "only messages of at most `SIZE`, such as 10MB or 35MiB")
	flags.Int64Var(&f.first, "first", 0, "only the newest `N`; 0: all")
	flags.StringVar(&f.format, "format", string(jobs.FormatRaw), "`FORMAT` raw; full, which is what Gmail makes of the message and the content of its attachments; or metadata-first: headers and labels of all messages before any raw body")
	return f
}

// filter returns the filter of the flags, in its normal form, or a usage error.
func (f *filterFlags) filter() (filter jobs.Filter, err error) {
	filter = jobs.Filter{Labels: f.labels, Query: f.query, SpamTrash: f.spamTrash, First: f.first, Format: jobs.Format(f.format)}
	if filter.After, filter.Before, err = f.moments(); err != nil {
		return jobs.Filter{}, err
	}
	if f.maxSize != "" {
		size, err := humanize.ParseBytes(f.maxSize)
		if err != nil || size == 0 || size > math.MaxInt64 {
			return jobs.Filter{}, usagef("--max-size %s is no size; give one such as 10MB or 35MiB", f.maxSize)
		}
		filter.MaxSize = int64(size)
	}
	if err := filter.Validate(); err != nil {
		return jobs.Filter{}, usage(err)
	}
	return filter.Normal(), nil
}

// allFlags choose backfills of many accounts instead of naming one.
type allFlags struct {
	all                    bool
	state, tenant, project string
}

// addAllFlags gives a command that takes one name the flags that choose many.
func addAllFlags(cmd *cobra.Command, verb string) *allFlags {
	f := new(allFlags)
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, verb+" those of all accounts, or of those that --state, --tenant and --project choose")
	flags.StringVar(&f.state, "state", "", "with --all: only those in `STATE`, for instance blocked or failed")
	flags.StringVar(&f.tenant, "tenant", "", "with --all: only those of accounts of `TENANT`")
	flags.StringVar(&f.project, "project", "", "with --all: only those of accounts of the Google Cloud `PROJECT`")
	cmd.Args = arguments(func(cmd *cobra.Command, args []string) error {
		switch {
		case f.all && len(args) > 0:
			return errors.New("--all is for those of all accounts: name none with it")
		case f.all:
			return nil
		case f.state != "" || f.tenant != "" || f.project != "":
			return errors.New("--state, --tenant and --project choose among many: give --all with them")
		}
		return cobra.ExactArgs(1)(cmd, args)
	})
	return f
}

// selection is what the flags choose.
func (f *allFlags) selection() (jobs.Selection, error) {
	s := jobs.Selection{State: jobs.State(f.state), Tenant: f.tenant, Project: f.project}
	if err := s.Validate(); err != nil {
		return s, usagef("--state: %w", err)
	}
	return s, nil
}

// failureFlags choose entries of a failure list.
type failureFlags struct {
	class, reason string
	ids           []string
}

func addFailureFlags(cmd *cobra.Command) *failureFlags {
	f := &failureFlags{}
	cmd.Flags().StringVar(&f.class, "class", "", "only those of `CLASS`, such as transient or item")
	cmd.Flags().StringVar(&f.reason, "reason", "", "only those with this `REASON`, exactly as listed")
	return f
}

func (f *failureFlags) filter() (jobs.FailureFilter, error) {
	filter := jobs.FailureFilter{Class: jobs.Class(f.class), Reason: f.reason, IDs: f.ids}
	if err := filter.Validate(); err != nil {
		return jobs.FailureFilter{}, usage(err)
	}
	return filter, nil
}
