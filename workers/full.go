package workers

import (
	"context"
	"fmt"
	"time"

	"headroom/jobs"
)

// attachmentWait is how long the call for an attachment may wait for quota in place.
// To be requeued costs the call for its message again, so that is for longer waits
// only.
const attachmentWait = 20 * time.Second

// fetchFull fetches a message in format full.
func (m *mailRun) fetchFull(ctx context.Context, quit <-chan struct{}, id string) (fetched, error) {
	f, err := get(m.slice, quit, func(ctx context.Context) (jobs.Fetched, error) { return m.box.Full(ctx, id) })
	if err != nil {
		return fetched{}, err
	}
	return m.storeFull(ctx, f)
}

// storeFull stores a message in format full: Google's answer as it is, and the content
// of every attachment that the answer names, so that nothing is left at Google.
func (m *mailRun) storeFull(ctx context.Context, f jobs.Fetched) (fetched, error) {
	if err := m.checkFilter(f, f.SizeEstimate); err != nil {
		return fetched{}, err
	}
	if m.oversize(f.SizeEstimate) {
		return m.metadataOf(f, 0)
	}
	message := m.rowOf(f.ID, f)
	message.Size, message.Subject, message.ParseStatus = f.SizeEstimate, f.Subject, jobs.Parsed
	var err error
	if message.Attachments, err = m.attachments(ctx, f); err != nil {
		return fetched{}, err
	}
	message.FullSize = int64(len(f.JSON))
	if message.FullSHA256, err = m.storeBody(ctx, f.JSON); err != nil {
		return fetched{}, err
	}
	return fetched{outcome: jobs.ItemStored, message: message}, nil
}

// storeBody stores a body that is in memory.
func (m *mailRun) storeBody(ctx context.Context, body []byte) (sum string, err error) {
	w := m.opts.Blobs.Create(ctx)
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
func (m *mailRun) attachments(ctx context.Context, f jobs.Fetched) (all []jobs.Attachment, err error) {
	if len(f.Attachments) == 0 {
		return nil, nil
	}
	stored, err := m.opts.Store.Attachments(ctx, m.job.Account, f.ID)
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
			a.SHA256, err = m.storeBody(ctx, a.Content)
		} else {
			a.Size, a.SHA256, err = m.fetchAttachment(f.ID, a)
		}
		if err != nil {
			return nil, err
		}
		if err := m.opts.Store.SaveAttachment(ctx, m.ref, f.ID, a); err != nil {
			return nil, storeFailed(fmt.Errorf("attachment %s: %w", a.Part, err))
		}
		all = append(all, a)
	}
	return all, nil
}

// fetchAttachment fetches the content of an attachment and stores it as it comes in.
func (m *mailRun) fetchAttachment(message string, a jobs.Attachment) (size int64, sum string, err error) {
	err = m.call(nil, func(ctx context.Context) error {
		w := m.opts.Blobs.Create(ctx)
		defer w.Close()
		if size, err = m.patient.Attachment(ctx, message, a, &intake{to: w}); err != nil {
			return err
		}
		sum, err = w.Commit()
		return storeFailed(err)
	})
	return size, sum, err
}
