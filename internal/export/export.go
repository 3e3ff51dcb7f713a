// Package export writes stored messages to files for other programs: to an mbox, or to
// one .eml file for each message. It only reads the store.
//
// A file gets its final name when it is complete: an interrupted export leaves nothing
// that looks like a result.
package export

import (
	"context"
	"errors"
	"fmt"
	"io"

	"headroom/jobs"
)

// A Source lists stored messages.
type Source interface {
	// FindMessages lists messages by id, from those after afterID.
	FindMessages(ctx context.Context, account string, f jobs.MessageFilter, afterID string, limit int) ([]jobs.Message, error)
}

// Bodies is where their raw bytes are.
type Bodies interface {
	// Open opens a raw message. The error is [jobs.ErrNotFound] if there is none, and
	// [jobs.ErrDamaged] if its bytes are not those that were stored.
	Open(ctx context.Context, sum string) (io.ReadCloser, error)
}

// Options says what to export. Source, Bodies and Account are required.
type Options struct {
	Source   Source
	Bodies   Bodies
	Account  string
	Filter   jobs.MessageFilter
	DoneFunc func(bytes int64) // called after each message with its size, if set
}

// Result counts what an export did.
type Result struct {
	Messages int64 `json:"messages"` // written
	Bytes    int64 `json:"bytes"`    // of their raw form
	Present  int64 `json:"present"`  // existed before, complete
	Missing  Left  `json:"missing"`  // have no stored body, and were left out
	Damaged  Left  `json:"damaged"`  // do not have the bytes that were stored any more
}

// Complete reports whether every requested message was exported, byte for byte.
func (r Result) Complete() bool { return r.Missing.Count == 0 && r.Damaged.Count == 0 }

// Left counts messages that were not exported.
type Left struct {
	Count int64    `json:"count"`
	IDs   []string `json:"ids"` // of the first hundred
}

func (l *Left) add(id string) {
	l.Count++
	if len(l.IDs) < 100 {
		l.IDs = append(l.IDs, id)
	}
}

// each calls a function with all messages in the order of their ids, and their raw
// bytes. It leaves out damaged messages.
func (o Options) each(ctx context.Context, write func(m jobs.Message, raw io.Reader) error) (Result, error) {
	r := Result{Missing: Left{IDs: []string{}}, Damaged: Left{IDs: []string{}}}
	for after := ""; ; {
		page, err := o.Source.FindMessages(ctx, o.Account, o.Filter, after, 0)
		if err != nil {
			return r, err
		}
		if len(page) == 0 {
			return r, nil
		}
		for _, m := range page {
			if err := o.one(ctx, &r, m, write); err != nil {
				return r, fmt.Errorf("export message %s: %w", m.ID, err)
			}
			if o.DoneFunc != nil {
				o.DoneFunc(m.Size)
			}
			after = m.ID
		}
	}
}

// errPresent reports that a message was exported before.
var errPresent = errors.New("there before")

func (o Options) one(ctx context.Context, r *Result, m jobs.Message, write func(jobs.Message, io.Reader) error) error {
	if m.SHA256 == "" {
		r.Missing.add(m.ID)
		return ctx.Err()
	}
	raw, err := o.Bodies.Open(ctx, m.SHA256)
	if errors.Is(err, jobs.ErrNotFound) {
		r.Missing.add(m.ID)
		return nil
	}
	if errors.Is(err, jobs.ErrDamaged) {
		r.Damaged.add(m.ID)
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	defer raw.Close()
	err = write(m, raw)
	switch {
	case errors.Is(err, errPresent):
		r.Present++
		return nil
	case err != nil:
		return err
	}
	r.Messages++
	r.Bytes += m.Size
	return nil
}
