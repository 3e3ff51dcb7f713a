package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"headroom/internal/app"
	"headroom/internal/store/sqlite"
	"headroom/internal/term"
	"headroom/jobs"
)

func newMessages(g *globals) *cobra.Command {
	return group(&cobra.Command{
		Use:     "messages",
		Short:   "Read and export the messages that are stored",
		Example: "  headroom messages export ann@example.com --format mbox --out ann.mbox",
	}, newMessagesList(g), newMessagesGet(g), newMessagesExport(g))
}

// messageFlags choose stored messages.
type messageFlags struct{ label, after, before, zone string }

func addMessageFlags(cmd *cobra.Command) *messageFlags {
	f := &messageFlags{}
	flags := cmd.Flags()
	flags.StringVar(&f.label, "label", "", "only those with the label of the id `LABEL`")
	flags.StringVar(&f.after, "after", "", "only those received at `TIME` or later: 2025-01-31 or 2025-01-31T12:00:00+01:00")
	flags.StringVar(&f.before, "before", "", "only those received before `TIME`")
	flags.StringVar(&f.zone, "zone", "UTC", "the time `ZONE` in which a day begins that is given without a time, such as Europe/Berlin")
	return f
}

// filter is what the flags say, or a usage error.
func (f *messageFlags) filter() (jobs.MessageFilter, error) {
	zone, err := time.LoadLocation(f.zone)
	if err != nil {
		return jobs.MessageFilter{}, usagef("--zone %s: no such time zone; name one such as Europe/Berlin, UTC or Local", f.zone)
	}
	filter := jobs.MessageFilter{Label: f.label}
	if filter.After, err = moment(f.after, zone); err != nil {
		return filter, usagef("--after %w", err)
	}
	if filter.Before, err = moment(f.before, zone); err != nil {
		return filter, usagef("--before %w", err)
	}
	if err := filter.Validate(); err != nil {
		return filter, &usageError{err}
	}
	return filter, nil
}

// withAccount opens the store for a command about an account.
func withAccount(cmd *cobra.Command, g *globals, email string, use func(context.Context, *sqlite.Store, jobs.Account) error) error {
	return withStore(cmd, g, func(ctx context.Context, s *sqlite.Store) error {
		cfg, err := g.load()
		if err != nil {
			return err
		}
		account, err := app.KnownAccount(ctx, cfg, s, email)
		if err != nil {
			return err
		}
		return use(ctx, s, account)
	})
}

func newMessagesList(g *globals) *cobra.Command {
	var f *messageFlags
	var limit int
	cmd := &cobra.Command{
		Use:   "list ACCOUNT",
		Short: "List the stored messages of an account",
		Long: `List the messages of an account that are stored, by id: when Gmail received them,
in the local time zone (with --json in UTC), their size, whether a body is stored,
labels by id with their names where those differ, and subject. Where Google gives no
date there is none; --after and --before leave such messages out. With --json a date
beyond the year 9999 is internal_date_ms, in milliseconds since 1970.

Exit codes: 0 listed, 1 failed, 2 wrong usage or settings.`,
		Example: "  headroom messages list ann@example.com --label INBOX --after 2025-01-01 --limit 20",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.filter()
			if err != nil {
				return err
			}
			if limit < 0 {
				return usagef("--limit %d is negative", limit)
			}
			return withAccount(cmd, g, args[0], func(ctx context.Context, s *sqlite.Store, account jobs.Account) error {
				each := func(use func(jobs.Message) error) error {
					return eachMessage(ctx, s, account.Email, filter, limit, use)
				}
				if g.json {
					all := []jobs.Message{}
					err := each(func(m jobs.Message) error { all = append(all, m); return nil })
					return errors.Join(err, term.WriteJSON(cmd.OutOrStdout(), all))
				}
				return tabulateMessages(cmd.OutOrStdout(), each)
			})
		},
	}
	f = addMessageFlags(cmd)
	cmd.Flags().IntVar(&limit, "limit", 0, "list at most `N`; 0: all")
	return cmd
}

// eachMessage reads messages in pages, at most limit of them unless that is 0.
func eachMessage(ctx context.Context, s *sqlite.Store, account string, filter jobs.MessageFilter, limit int, use func(jobs.Message) error) error {
	left := limit
	for after := ""; limit == 0 || left > 0; {
		page, err := s.FindMessages(ctx, account, filter, after, min(left, sqlite.DefaultPage))
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return nil
		}
		for _, m := range page {
			if err := use(m); err != nil {
				return err
			}
			after = m.ID
			left--
		}
	}
	return nil
}

func tabulateMessages(out io.Writer, each func(func(jobs.Message) error) error) error {
	w := term.NewTable(out, "ID", "RECEIVED", "SIZE", "BODY", "LABELS…", "SUBJECT…")
	err := each(func(m jobs.Message) error {
		w.Row(m.ID, term.Time(m.Received()), humanize.IBytes(uint64(max(0, m.Size))), bodyText(m), strings.Join(labelTexts(m), ","), m.Subject)
		return nil
	})
	return errors.Join(err, w.Flush())
}

// bodyText says in which formats a message's body is stored, or why it is not.
func bodyText(m jobs.Message) string {
	var formats []string
	if m.SHA256 != "" {
		formats = append(formats, string(jobs.FormatRaw))
	}
	if m.FullSHA256 != "" {
		formats = append(formats, string(jobs.FormatFull))
	}
	switch {
	case len(formats) > 0:
		return strings.Join(formats, "+")
	case m.ParseStatus == jobs.ParseNever:
		return "skipped: too large"
	}
	return "to come"
}

// labelTexts are a message's labels by their ids, with the names of those that have
// another.
func labelTexts(m jobs.Message) []string {
	var texts []string
	for i, id := range m.Labels {
		if i < len(m.LabelNames) && m.LabelNames[i] != "" && m.LabelNames[i] != id {
			id += " (" + m.LabelNames[i] + ")"
		}
		texts = append(texts, id)
	}
	return texts
}

func newMessagesGet(g *globals) *cobra.Command {
	var raw, full bool
	var part string
	cmd := &cobra.Command{
		Use:   "get ACCOUNT ID",
		Short: "Show one stored message, or print it raw",
		Long: `Show what is stored of one message beside its body; with --raw print the message
itself on stdout, byte for byte as Gmail had it, with --full Gmail's answer in format
full, as JSON, and with --part the content of one of its attachments.

Exit codes: 0 shown, 1 failed, 2 wrong usage or settings.`,
		Example: "  headroom messages get ann@example.com 18c2f0a1b2c3d4e5 --raw > message.eml",
		Args:    arguments(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			forms := 0
			for _, chosen := range []bool{raw, full, part != "", g.json} {
				if chosen {
					forms++
				}
			}
			if forms > 1 {
				return usagef("--raw, --full, --part and --json are forms of their own; choose one")
			}
			return withStore(cmd, g, func(ctx context.Context, s *sqlite.Store) error {
				cfg, err := g.load()
				if err != nil {
					return err
				}
				if raw || full || part != "" {
					var body io.ReadCloser
					if raw {
						_, body, err = app.OpenMessage(ctx, cfg, s, args[0], args[1])
					} else {
						body, err = app.OpenFull(ctx, cfg, s, args[0], args[1], part)
					}
					if err != nil {
						return err
					}
					_, err = io.Copy(term.Raw(cmd.OutOrStdout()), body)
					return errors.Join(err, body.Close())
				}
				m, err := app.StoredMessage(ctx, cfg, s, args[0], args[1])
				if err != nil {
					return err
				}
				if g.json {
					return term.WriteJSON(cmd.OutOrStdout(), m)
				}
				return printMessage(cmd.OutOrStdout(), m)
			})
		},
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "print the message itself")
	cmd.Flags().BoolVar(&full, "full", false, "print Gmail's answer in format full")
	cmd.Flags().StringVar(&part, "part", "", "print the content of the attachment that is part `N`, such as 1 or 0.2")
	return cmd
}

func printMessage(out io.Writer, m jobs.Message) error {
	w := term.NewFacts(out)
	row := w.Add
	row("message", "%s", m.ID)
	row("account", "%s", m.Account)
	row("thread", "%s", m.ThreadID)
	row("received", "%s", term.Time(m.Received()))
	row("labels", "%s", strings.Join(labelTexts(m), ", "))
	row("subject", "%s", m.Subject)
	row("size", "%s (%d bytes)", humanize.IBytes(uint64(max(0, m.Size))), m.Size)
	body := m.SHA256
	switch {
	case body == "" && m.ParseStatus == jobs.ParseNever:
		body = "skipped: it is larger than worker.max_message_bytes was"
	case body == "":
		body = "not stored"
	}
	row("body, SHA-256", "%s", body)
	if m.FullSHA256 != "" {
		row("full, SHA-256", "%s", m.FullSHA256)
	}
	for _, a := range m.Attachments {
		row("part "+a.Part, "%s, %s, %s, SHA-256 %s", cmp.Or(a.Filename, "without a name"), a.MimeType, humanize.IBytes(uint64(max(0, a.Size))), a.SHA256)
	}
	if m.ParseStatus == jobs.ParseFailed {
		row("unreadable", "%s", m.ParseError)
	}
	return w.Flush()
}
