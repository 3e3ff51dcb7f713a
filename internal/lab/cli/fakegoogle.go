package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/calendar"
	"headroom/internal/lab/fakegoogle/meter"
	"headroom/internal/term"
)

// fakeStopTimeout bounds the wait for the fake's last answers. The HTTP server waits some
// 6 s for a connection that has not sent a request yet.
const fakeStopTimeout = 10 * time.Second

// fakeStarted is the first line of fake-google.
type fakeStarted struct {
	URL       string   `json:"url"`
	Mailboxes []string `json:"mailboxes"`
	// Calendars are accounts with calendars; Problems are parts of their files that
	// were not understood.
	Calendars []string           `json:"calendars,omitempty"`
	Problems  []calendar.Problem `json:"problems,omitempty"`
}

func newFakeGoogle(r Root) *cobra.Command {
	var o fakegoogle.Options
	var listen string
	var mailboxes, calendars []string
	cmd := &cobra.Command{
		Use:   "fake-google",
		Short: "Run a Google to test against",
		Long: `Run a Gmail and a Calendar to test against until told to stop. It speaks Google's
protocol, meters every call by its own tables, and refuses as Google does. The first
line on stdout is JSON with its url; docs/fake-google.md says what else it can do.

A mailbox is EMAIL=PATH, where PATH is an mbox file or a folder of mbox and eml
files, EMAIL=generate:N for N generated messages, or EMAIL=generate:N:SIZE for N
of SIZE bytes each, such as 35MB. The bearer token of a request selects the
mailbox.

Calendars are EMAIL=PATH, where PATH is a folder of ics files, one calendar each,
EMAIL=generate:N for N generated events, or EMAIL=generate:CxN for N in each of C
calendars. What could not be read of a file is named in the first line too.

Exit codes: 0 stopped as asked, 1 failed, 2 wrong usage.`,
		Example: `  headroom fake-google --listen 127.0.0.1:9000 --mailbox ann@example.com=generate:1000
  headroom fake-google --mailbox ann@example.com=mail.mbox --meter bucket --scale 10`,
		Annotations: r.UntilStopped,
		Args:        r.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Scale < 1 {
				return r.usagef("--scale %d is not at least 1", o.Scale)
			}
			log, err := r.Log(cmd)
			if err != nil {
				return err
			}
			o.Log = log.Named("fake")
			fake, err := fakegoogle.New(o)
			if err != nil {
				return r.Usage(err)
			}
			started, err := r.loadMailboxes(fake, mailboxes)
			if err != nil {
				return err
			}
			if err := r.loadCalendars(fake, calendars, &started); err != nil {
				return err
			}
			url, shutdown, err := fake.Listen(listen)
			if err != nil {
				return fmt.Errorf("%w; choose another address with --listen", err)
			}
			started.URL = url
			if err := term.WriteJSON(cmd.OutOrStdout(), started); err != nil {
				return errors.Join(err, stopFake(cmd.Context(), shutdown))
			}
			<-cmd.Context().Done()
			return stopFake(cmd.Context(), shutdown)
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:0", "listen on `HOST:PORT`; port 0 takes a free one")
	f.StringArrayVar(&mailboxes, "mailbox", nil, "serve a mailbox, `EMAIL=PATH` or EMAIL=generate:N[:SIZE]; may be repeated")
	f.StringArrayVar(&calendars, "calendar", nil, "serve calendars, `EMAIL=PATH` or EMAIL=generate:[Cx]N; may be repeated")
	f.StringVar(&o.Meter, "meter", fakegoogle.DefaultMeter, "how to refuse: fixed, anchored, sliding or bucket")
	f.StringVar(&o.Prices, "prices", fakegoogle.DefaultPrices, "price list: gmail-legacy, gmail-2026-05 or gmail-2026-10")
	f.IntVar(&o.Scale, "scale", 1, "let quota time run `N` times faster")
	f.DurationVar(&o.Jitter, "jitter", 0, "median of a random delay before the meter")
	f.DurationVar(&o.Latency, "latency", 0, "time between the meter and the answer")
	f.Int64Var(&o.UserLimit, "user-limit", 0, "`UNITS` per minute of a user (default the price list's)")
	f.Int64Var(&o.ProjectLimit, "project-limit", 0, "`UNITS` per minute of a project (default the price list's)")
	f.Int64Var(&o.CalendarUserLimit, "calendar-user-limit", 0, "`REQUESTS` per minute of a user of Calendar (default the price list's)")
	f.Int64Var(&o.CalendarProjectLimit, "calendar-project-limit", 0, "`REQUESTS` per minute of a project of Calendar (default the price list's)")
	f.IntVar(&o.InFlightLimit, "in-flight-limit", fakegoogle.DefaultInFlightLimit, "calls of a user at once")
	f.Int64Var(&o.BytesPerDay, "bytes-per-day", fakegoogle.DefaultBytesPerDay, "raw bytes of messages that a user is sent in a day")
	f.DurationVar(&o.PushBack, "push-back", 0, "refuse calls before the moment of a \"Retry after\", and move it so much later each time")
	offerMeters(cmd, meter.Algorithms())
	f.Uint64Var(&o.Seed, "seed", 0, "seed of what is random")
	return cmd
}

func stopFake(ctx context.Context, shutdown func(context.Context) error) error {
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), fakeStopTimeout)
	defer cancel()
	return shutdown(bound)
}

// loadMailboxes fills the fake.
func (r Root) loadMailboxes(fake *fakegoogle.Server, specs []string) (fakeStarted, error) {
	started := fakeStarted{Mailboxes: []string{}}
	for _, spec := range specs {
		email, from, ok := cutMailbox(spec)
		if !ok {
			return fakeStarted{}, r.usagef("--mailbox %q must be EMAIL=PATH or EMAIL=generate:N", spec)
		}
		if err := fake.Load(email, from); err != nil {
			return fakeStarted{}, fmt.Errorf("--mailbox %s: %w", spec, err)
		}
		started.Mailboxes = append(started.Mailboxes, email)
	}
	return started, nil
}

// loadCalendars fills the calendars of the fake.
func (r Root) loadCalendars(fake *fakegoogle.Server, specs []string, started *fakeStarted) error {
	for _, spec := range specs {
		email, from, ok := cutMailbox(spec)
		if !ok {
			return r.usagef("--calendar %q must be EMAIL=PATH or EMAIL=generate:N", spec)
		}
		problems, err := fake.LoadCalendars(email, from)
		if err != nil {
			return fmt.Errorf("--calendar %s: %w", spec, err)
		}
		started.Calendars = append(started.Calendars, email)
		started.Problems = append(started.Problems, problems...)
	}
	return nil
}

// cutMailbox splits EMAIL=PATH at the first = after the @ of the address, since the part
// before the @ may contain one.
func cutMailbox(spec string) (email, from string, ok bool) {
	at := max(0, strings.Index(spec, "@"))
	domain, from, ok := strings.Cut(spec[at:], "=")
	email = spec[:at] + domain
	return email, from, ok && email != "" && from != ""
}
