package cli

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"headroom/internal/lab/demo"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/meter"
	"headroom/internal/term"
)

func newDemo(r Root) *cobra.Command {
	var o demo.Options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Backfill three mailboxes under a quota while people use them",
		Long: `Run the main job in one process, against a Google that is part of it: three
mailboxes are backfilled under their quota, while people open and list messages
in the same accounts. It needs nothing but this binary, takes half a minute or so,
and ends by itself with a summary: what Google's own meter saw, whether every
message arrived byte for byte, and how the people fared.

Quota time runs ten times faster, so that a minute's window takes six seconds;
limits and costs are Google's.

These promises are checked: every message is stored, byte for byte; Google
refuses no call, and no minute, however aligned, holds more than a limit; of at
least 100 calls that people make none is denied; and the backfill did wait for
quota, if there is more mail than a window lets through. How long people wait
(p99 of 250 ms at most) and how much of its share the backfill uses (90 % at
least) also depend on what else the machine does: what misses these aims is named
in the summary, and breaks no promise.

Exit codes: 0 every promise was kept, 1 one was broken or the run failed, 2 wrong
usage, 130 interrupted.`,
		Example: `  headroom demo
  headroom demo --mbox ~/archive.mbox --prices gmail-2026-10 --meter bucket --json`,
		Args: r.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := r.demoUsage(o); err != nil {
				return err
			}
			log, err := quietLog(cmd)
			if err != nil {
				return err
			}
			o.Log = log
			var show demoView
			switch {
			case r.JSON():
				show = &demoLines{r: r, out: cmd.ErrOrStderr()}
			case term.IsTerminal(cmd.OutOrStdout()):
				show = &demoBars{r: r, out: cmd.OutOrStdout()}
			default:
				show = &demoLines{r: r, out: cmd.OutOrStdout()}
			}
			var begun sync.Once
			o.Watch = func(s demo.Snapshot) {
				begun.Do(func() { // not before all of it has started, or an error would hide below
					if !r.JSON() {
						introduceDemo(cmd.OutOrStdout(), o, s)
					}
				})
				show.show(s)
			}
			summary, err := demo.Run(cmd.Context(), o)
			show.close()
			if err != nil {
				if interrupted(cmd.Context(), err) {
					return errors.New("the demo was stopped before its end")
				}
				return err
			}
			if r.JSON() {
				for _, missed := range summary.Slow() {
					fmt.Fprintln(cmd.ErrOrStderr(), "the machine was busy:", missed)
				}
				if err := term.WriteJSON(cmd.OutOrStdout(), summary); err != nil {
					return err
				}
			} else {
				summarizeDemo(cmd.OutOrStdout(), summary)
			}
			if broken := summary.Broken(); broken != "" {
				return fmt.Errorf("a promise was broken: %s", broken)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Mail, "mbox", "", "deal the mail of `PATH`, an mbox file or a folder of mbox and eml files, among the mailboxes (default generated mail)")
	f.StringVar(&o.Prices, "prices", fakegoogle.DefaultPrices, "price list: gmail-legacy, gmail-2026-05 or gmail-2026-10")
	f.IntVar(&o.Scale, "scale", 10, "let quota time run `N` times faster, from 1 to 100")
	f.StringVar(&o.Meter, "meter", fakegoogle.DefaultMeter, "how Google refuses: fixed, anchored, sliding or bucket")
	f.StringVar(&o.Redis, "redis", "", "use the Redis at `URL` and leave nothing in it (default an embedded one)")
	offerMeters(cmd, meter.Algorithms())
	f.BoolVar(&o.Keep, "keep", false, "keep the folder with the stored messages")
	return cmd
}

func (r Root) demoUsage(o demo.Options) error {
	if o.Scale < 1 || o.Scale > 100 {
		return r.usagef("--scale %d is not from 1 to 100", o.Scale)
	}
	if o.Redis != "" {
		if err := demo.CheckRedisURL(o.Redis); err != nil {
			return r.usagef("--redis: %w", err)
		}
	}
	if _, err := fakegoogle.New(fakegoogle.Options{Prices: o.Prices, Meter: o.Meter, Scale: o.Scale}); err != nil {
		return r.Usage(err)
	}
	return nil
}

func introduceDemo(out io.Writer, o demo.Options, s demo.Snapshot) {
	what := "2,400 generated messages"
	if o.Mail != "" {
		what = "the mail of " + o.Mail
	}
	redis := "an embedded Redis"
	if o.Redis != "" {
		redis = "a Redis of yours"
	}
	fmt.Fprintf(out, `Headroom demo: %s in three mailboxes of a fake Google.
  Google lets each account spend what price list %s says (meter: %s).
  Backfill may fill that to 80 %%. The rest is headroom for the people who, at the
  same time, open and list messages in the same accounts.
  Everything is real but Google: Asynq on %s, SQLite, Google's Go client.
  Quota time runs %s.

While it runs: dashboard %s, queues %s/queues/
               store     %s

`, what, o.Prices, o.Meter, redis, times(o.Scale), s.Pages, s.Pages, s.Folder)
}

// times says how fast quota time runs.
func times(scale int) string {
	if scale == 1 {
		return "as fast as the clock"
	}
	return fmt.Sprintf("%d times faster: a minute of it takes %s", scale, (time.Minute / time.Duration(scale)).Round(100*time.Millisecond))
}

func summarizeDemo(out io.Writer, s demo.Summary) {
	fmt.Fprintf(out, `
Messages     %d of %d stored, %d identical to the input byte for byte%s
Google       refused %d calls; by its log %d accounts or projects exceeded a limit in any window
Backfill     used %s of what its ceiling and the people left it
             waited for quota at %d calls, went back to the queue %d times
People       %d calls (%d units), %d denied
             the quota's answer took %.1f ms (median), %.1f ms (p99)
Took         %.0f s
`, s.Stored, s.Messages, s.Identical, parseNote(s), s.RefusedByGoogle, s.OverLimitWindows,
		utilizationText(s), s.DeniedByQuota, s.Requeued,
		s.InteractiveCalls, s.InteractiveUnits, s.InteractiveDenied, s.InteractiveWaitP50MS, s.InteractiveWaitP99MS, s.Seconds)
	if s.Folder != "" {
		fmt.Fprintf(out, "Stored in    %s\n", s.Folder)
	}
	for i, missed := range s.Slow() {
		fmt.Fprintf(out, "%-12s %s\n", []string{"Busy machine", ""}[min(i, 1)], missed)
	}
	if s.Broken() != "" {
		return // what comes next is the error
	}
	fmt.Fprint(out, `
Every promise was kept: all mail is there, Google had nothing to refuse, and nobody
was denied.
Next: headroom demo --mbox PATH for mail of your own; README.md for a real account;
docs/design.md for how it works.
`)
}

// utilizationText is the backfill's utilization in words.
func utilizationText(s demo.Summary) string {
	if s.BackfillUtilization == nil {
		return "(too short a run to say how much)"
	}
	return fmt.Sprintf("%.0f %%", 100**s.BackfillUtilization)
}

func parseNote(s demo.Summary) string {
	if s.ParseFailed == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d that no mail reader can parse, kept raw)", s.ParseFailed)
}
