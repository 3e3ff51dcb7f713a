package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"headroom/internal/control"
	"headroom/internal/term"
	"headroom/jobs"
)

// messageFlags choose stored messages.
type messageFlags struct {
	*spanFlags
	label string
}

func addMessageFlags(cmd *cobra.Command) *messageFlags {
	f := &messageFlags{spanFlags: addSpanFlags(cmd,
		"after", "only those received at `TIME` or later", "before", "only those received before `TIME`")}
	cmd.Flags().StringVar(&f.label, "label", "", "only those with the label of the id `LABEL`")
	return f
}

// filter returns the filter of the flags, or a usage error.
func (f *messageFlags) filter() (filter jobs.MessageFilter, err error) {
	filter.Label = f.label
	if filter.After, filter.Before, err = f.moments(); err != nil {
		return filter, err
	}
	if err := filter.Validate(); err != nil {
		return filter, usage(err)
	}
	return filter, nil
}

var messageTable = term.Table[jobs.Message]{
	Columns: []string{"ID", "RECEIVED", "SIZE", "BODY", "LABELS…", "SUBJECT…"},
	Cells: func(m jobs.Message) []any {
		return []any{m.ID, term.Time(m.Received()), bytesText(m.Size), bodyText(m), strings.Join(labelTexts(m), ","), m.Subject}
	},
	Empty: "no stored messages match; headroom backfill list shows what is under way",
}

func newMessagesList(g *globals) *cobra.Command {
	var f *messageFlags
	var limit int
	cmd := list(g, "list ACCOUNT", cobra.ExactArgs(1), messageTable, func(ctx context.Context, c *control.Control, args []string) ([]jobs.Message, error) {
		filter, err := f.filter()
		if err != nil {
			return nil, err
		}
		if limit < 0 {
			return nil, usagef("--limit %d is negative", limit)
		}
		return findMessages(ctx, c, args[0], filter, limit)
	})
	f = addMessageFlags(cmd)
	cmd.Flags().IntVar(&limit, "limit", 0, "list at most `N`; 0: all")
	return cmd
}

// messagePage is how many messages are read at once.
const messagePage = 500

// findMessages reads messages in pages, at most limit of them unless that is 0.
func findMessages(ctx context.Context, c *control.Control, account string, filter jobs.MessageFilter, limit int) (all []jobs.Message, err error) {
	for after := ""; limit == 0 || len(all) < limit; after = all[len(all)-1].ID {
		n := messagePage
		if limit > 0 {
			n = min(n, limit-len(all))
		}
		page, err := c.FindMessages(ctx, account, filter, after, n)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
	}
	return all, nil
}

// bodyText is the formats in which a message's body is stored, or why it is not.
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

// labelTexts are the ids of a message's labels, each with its name if that differs.
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
	cmd := g.command("get ACCOUNT ID", cobra.ExactArgs(2), func(ctx context.Context, cmd *cobra.Command, c *control.Control, args []string) error {
		forms := 0
		for _, chosen := range []bool{raw, full, part != "", g.json} {
			if chosen {
				forms++
			}
		}
		if forms > 1 {
			return usagef("--raw, --full, --part and --json are forms of their own; choose one")
		}
		if raw || full || part != "" {
			return copyBody(ctx, cmd.OutOrStdout(), c, args[0], args[1], raw, part)
		}
		m, err := c.Message(ctx, args[0], args[1])
		if err != nil {
			return err
		}
		return printResult(cmd, g, m, writeMessage)
	})
	cmd.Flags().BoolVar(&raw, "raw", false, "print the message itself")
	cmd.Flags().BoolVar(&full, "full", false, "print Gmail's answer in format full")
	cmd.Flags().StringVar(&part, "part", "", "print the content of the attachment that is part `N`, such as 1 or 0.2")
	return cmd
}

// copyBody writes a stored body byte for byte: the raw one, or what format full has.
func copyBody(ctx context.Context, out io.Writer, c *control.Control, account, id string, raw bool, part string) (err error) {
	var body io.ReadCloser
	if raw {
		_, body, err = c.OpenMessage(ctx, account, id)
	} else {
		body, err = c.OpenFull(ctx, account, id, part)
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(term.Raw(out), body)
	return errors.Join(err, body.Close())
}

func writeMessage(out io.Writer, m jobs.Message) error {
	body := m.SHA256
	switch {
	case body == "" && m.ParseStatus == jobs.ParseNever:
		body = "skipped: it is larger than worker.max_message_bytes was"
	case body == "":
		body = "not stored"
	}
	w := term.NewGrid(out)
	w.Row("message", m.ID)
	w.Row("account", m.Account)
	w.Row("thread", m.ThreadID)
	w.Row("received", term.Time(m.Received()))
	w.Row("labels", strings.Join(labelTexts(m), ", "))
	w.Row("subject", m.Subject)
	w.Row("size", fmt.Sprintf("%s (%d bytes)", bytesText(m.Size), m.Size))
	w.Row("body, SHA-256", body)
	if m.FullSHA256 != "" {
		w.Row("full, SHA-256", m.FullSHA256)
	}
	for _, a := range m.Attachments {
		w.Add("part "+a.Part, "%s, %s, %s, SHA-256 %s", cmp.Or(a.Filename, "without a name"), a.MimeType, bytesText(a.Size), a.SHA256)
	}
	if m.ParseStatus == jobs.ParseFailed {
		w.Row("unreadable", m.ParseError)
	}
	return w.Flush()
}
