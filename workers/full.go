package workers

import (
	"context"
	"fmt"
	"time"

	"headroom/jobs"
)

// attachmentWait is how long the call for an attachment may wait for quota in place.
// Going back to the queue costs the call for its message again, so that is for
// longer waits only.
const attachmentWait = 20 * time.Second

// fetchFull fetches a message in format full.
func (s *slice) fetchFull(ctx, calls context.Context, id string) (fetched, error) {
	f, err := s.box.Full(calls, id)
	if err != nil {
		return fetched{}, err
	}
	return s.keepFull(ctx, calls, f)
}

// keepFull keeps a message in format full: Google's answer as it is, and the content
// of every attachment that the answer names, so that nothing is left at Google.
func (s *slice) keepFull(ctx, calls context.Context, f jobs.Fetched) (fetched, error) {
	if err := s.within(f, f.SizeEstimate); err != nil {
		return fetched{}, err
	}
	if s.oversize(f.SizeEstimate) {
		return s.noted(f, 0)
	}
	message := s.rowOf(f.ID, f)
	message.Size, message.Subject, message.ParseStatus = f.SizeEstimate, f.Subject, jobs.Parsed
	var err error
	if message.Attachments, err = s.attachments(ctx, calls, f); err != nil {
		return fetched{}, err
	}
	message.FullSize = int64(len(f.JSON))
	if message.FullSHA256, err = s.storeBody(ctx, f.JSON); err != nil {
		return fetched{}, err
	}
	return fetched{outcome: jobs.ItemStored, message: message}, nil
}

// storeBody stores a body that is in memory.
func (s *slice) storeBody(ctx context.Context, body []byte) (sum string, err error) {
	w := s.opts.Blobs.Create(ctx)
	defer w.Close()
	if _, err := w.Write(body); err != nil {
		return "", storeFailed(err)
	}
	sum, err = w.Commit()
	return sum, storeFailed(err)
}

// attachments returns the attachments of a message. It fetches those that no attempt
// before has stored, and records each at once: its part stays the same, while Google
// gives it another id with every answer.
func (s *slice) attachments(ctx, calls context.Context, f jobs.Fetched) (all []jobs.Attachment, err error) {
	if len(f.Attachments) == 0 {
		return nil, nil
	}
	stored, err := s.opts.Store.Attachments(ctx, s.job.Account, f.ID)
	if err != nil {
		return nil, storeFailed(err)
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
		if a.Content != nil { // it came with its message
			a.SHA256, err = s.storeBody(ctx, a.Content)
		} else {
			a.Size, a.SHA256, err = s.fetchAttachment(ctx, calls, f.ID, a)
		}
		if err != nil {
			return nil, err
		}
		if err := s.opts.Store.SaveAttachment(ctx, s.ref, f.ID, a); err != nil {
			return nil, storeFailed(fmt.Errorf("attachment %s: %w", a.Part, err))
		}
		all = append(all, a)
	}
	return all, nil
}

// fetchAttachment fetches the content of an attachment and stores it as it comes in.
func (s *slice) fetchAttachment(ctx, calls context.Context, message string, a jobs.Attachment) (size int64, sum string, err error) {
	err = s.call(calls, nil, func(calls context.Context) error {
		w := s.opts.Blobs.Create(ctx)
		defer w.Close()
		if size, err = s.patient.Attachment(calls, message, a, &intake{to: w}); err != nil {
			return err
		}
		sum, err = w.Commit()
		return storeFailed(err)
	})
	return size, sum, err
}
