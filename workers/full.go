package workers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"headroom/jobs"
)

// attachmentWait is how long the call for an attachment may wait for quota in place.
// Going back to the queue costs the call for its message again, so that is for
// longer waits only.
const attachmentWait = 20 * time.Second

// bringFull fetches a message in format full.
func (s *slice) bringFull(ctx, calls context.Context, id string) (got, error) {
	f, err := s.box.Full(calls, id)
	if err != nil {
		return got{}, err
	}
	return s.keepFull(ctx, calls, f)
}

// keepFull keeps a message in format full: Google's answer as it is, and the content
// of every attachment that the answer names, so that nothing is left at Google.
func (s *slice) keepFull(ctx, calls context.Context, f jobs.Fetched) (got, error) {
	if err := s.within(f, f.SizeEstimate); err != nil {
		return got{}, err
	}
	if s.oversize(f.SizeEstimate) {
		return s.noted(f, 0)
	}
	message := s.rowOf(f.ID, f)
	message.Size, message.Subject, message.ParseStatus = f.SizeEstimate, f.Subject, jobs.Parsed
	var g got
	var err error
	if message.Attachments, g.unkept, err = s.attachments(ctx, calls, f); g.unkept != nil || err != nil {
		return g, err
	}
	message.FullSize = int64(len(f.JSON))
	message.FullSHA256, g.unkept = s.opts.Store.PutBlob(ctx, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(f.JSON))
		return err
	})
	g.outcome, g.message = jobs.ItemStored, message
	return g, nil
}

// attachments brings those attachments of a message that are not there from an
// attempt before, and records each at once: its part stays the same, while Google
// gives it another id with every answer. Unkept is the error of whoever should have
// kept them.
func (s *slice) attachments(ctx, calls context.Context, f jobs.Fetched) (all []jobs.Attachment, unkept, err error) {
	if len(f.Attachments) == 0 {
		return nil, nil, nil
	}
	stored, err := s.opts.Store.Attachments(ctx, s.job.Account, f.ID)
	if err != nil {
		return nil, err, nil
	}
	before := map[string]jobs.Attachment{}
	for _, a := range stored {
		before[a.Part] = a
	}
	for _, a := range f.Attachments {
		if old, ok := before[a.Part]; ok {
			all = append(all, old)
			continue
		}
		if a, unkept, err = s.attachment(ctx, calls, f.ID, a); unkept != nil || err != nil {
			return nil, unkept, err
		}
		all = append(all, a)
	}
	return all, nil, nil
}

// attachment brings one attachment, as it comes in, or keeps the content that came
// with its message.
func (s *slice) attachment(ctx, calls context.Context, message string, a jobs.Attachment) (_ jobs.Attachment, unkept, err error) {
	if a.Content != nil {
		a.SHA256, unkept = s.opts.Store.PutBlob(ctx, func(w io.Writer) error {
			_, err := w.Write(a.Content)
			return err
		})
		if unkept != nil {
			return a, unkept, nil
		}
		return a, s.saveAttachment(ctx, message, a), nil
	}
	err = s.call(calls, nil, func(calls context.Context) (err error) {
		in := &intake{}
		a.SHA256, unkept = s.opts.Store.PutBlob(ctx, func(w io.Writer) error {
			in.to = w
			a.Size, err = s.patient.Attachment(calls, message, a, in)
			return err
		})
		switch {
		case in.err != nil:
			unkept = in.err
			return nil
		case err != nil: // PutBlob has returned it, too
			unkept = nil
		}
		return err
	})
	if unkept != nil || err != nil {
		return a, unkept, err
	}
	return a, s.saveAttachment(ctx, message, a), nil
}

func (s *slice) saveAttachment(ctx context.Context, message string, a jobs.Attachment) error {
	if err := s.opts.Store.SaveAttachment(ctx, s.ref, message, a); err != nil {
		return fmt.Errorf("attachment %s: %w", a.Part, err)
	}
	return nil
}
