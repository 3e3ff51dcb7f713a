package memstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"headroom/jobs"
)

// Commit records what became of a batch of items, all or nothing. An item that has its
// outcome keeps it.
func (s *Store) Commit(ctx context.Context, ref jobs.TaskRef, results []jobs.Result) (jobs.Job, error) {
	for _, r := range results {
		if err := r.Validate(); err != nil {
			return jobs.Job{}, fmt.Errorf("commit %s: %w", ref.TaskID(), err)
		}
	}
	return s.owned(ctx, ref, "commit", func(j *job, a *account, now time.Time) error {
		for _, r := range results {
			if j.items[r.ID] == nil {
				return fmt.Errorf("item %q: %w", r.ID, jobs.ErrNotFound)
			}
		}
		for _, r := range results {
			if i := j.items[r.ID]; i.state == jobs.ItemPending {
				s.apply(j, a, i, r, now)
			}
		}
		return nil
	})
}

// apply records the result of a pending item.
func (s *Store) apply(j *job, a *account, i *item, r jobs.Result, now time.Time) {
	j.Count(r)
	i.Noted = i.Noted || r.Outcome == jobs.ItemNoted
	i.state, i.due = r.Outcome, time.Time{}
	switch r.Outcome {
	case jobs.ItemDeferred: // the caller's moment is carried over to the store's clock
		i.state, i.due = jobs.ItemPending, now
		if !r.RetryAt.IsZero() {
			i.due = truncate(now.Add(time.Until(r.RetryAt)))
		}
		j.fail(i, r, now)
		return
	case jobs.ItemFailed:
		j.fail(i, r, now)
		return
	}
	delete(j.failures, r.ID)
	if m := a.messages[r.ID]; m != nil || r.Message != nil {
		a.applyMessage(j.Kind, r, now)
	}
	if r.Outcome == jobs.ItemStored && j.Kind == jobs.MailSync { // a backfill that lists it need not fetch it again
		s.settle(j, r.ID, jobs.ItemKnown)
	}
}

// fail notes a failed attempt in the failure list.
func (j *job) fail(i *item, r jobs.Result, now time.Time) {
	i.Attempts++
	f := *r.Failure
	f.Job, f.ID, f.Attempts, f.FirstAt, f.LastAt, f.GivenUp = j.ID, r.ID, i.Attempts, now, now, r.Outcome == jobs.ItemFailed
	f.Reason = clean(f.Reason)
	if before := j.failures[r.ID]; before != nil {
		f.FirstAt = before.FirstAt
	}
	j.failures[r.ID] = &f
}

// applyMessage writes what a result says of its message to the message's row.
func (a *account) applyMessage(kind jobs.Kind, r jobs.Result, now time.Time) {
	m := a.message(r.ID)
	if r.Message != nil && r.Outcome != jobs.ItemSkipped {
		got := *r.Message
		got.Subject, got.ParseError = clean(got.Subject), clean(got.ParseError)
		got.InternalDate, got.Labels = truncate(got.InternalDate), append([]string{}, got.Labels...)
		m.Take(got)
	}
	switch r.Outcome {
	case jobs.ItemOversize:
		m.Oversize()
	case jobs.ItemGone:
		m.NotFound(kind, now)
	}
}

// message is the row of a message, which is made if there is none.
func (a *account) message(id string) *jobs.Message {
	if a.messages[id] == nil {
		m := jobs.UnknownMessage(a.Email, id)
		a.messages[id] = &m
	}
	return a.messages[id]
}

// settle gives a message's open items, of whichever job of the account, an outcome that
// the work on j has found out. A body counts only for jobs that fetch the same.
func (s *Store) settle(by *job, id string, outcome jobs.Outcome) {
	for _, j := range s.jobs {
		i := j.items[id]
		if j.Account != by.Account || i == nil || i.state != jobs.ItemPending && i.state != jobs.ItemNoted ||
			outcome != jobs.ItemGone && j.Filter.Bodies() != by.Filter.Bodies() {
			continue
		}
		i.state, i.due = outcome, time.Time{}
		if outcome == jobs.ItemGone {
			j.Progress.Gone++
		} else {
			j.Progress.Known++
		}
		delete(j.failures, id)
	}
}

// hasMessages reports whether any message of the account is known by more than its
// history.
func (a *account) hasMessages() bool {
	for _, m := range a.messages {
		if m.DeletedAt.IsZero() && !m.Stub {
			return true
		}
	}
	return false
}

// SaveAttachment records an attachment of a message, which need not be stored yet.
func (s *Store) SaveAttachment(ctx context.Context, ref jobs.TaskRef, message string, at jobs.Attachment) error {
	if err := jobs.CheckSum(at.SHA256); err != nil {
		return fmt.Errorf("save attachment %s of message %q: %w", at.Part, message, err)
	}
	_, err := s.owned(ctx, ref, "save an attachment", func(_ *job, a *account, _ time.Time) error {
		if a.attachments[message] == nil {
			a.attachments[message] = map[string]jobs.Attachment{}
		}
		at.ID, at.Content = "", nil
		a.attachments[message][at.Part] = at
		return nil
	})
	return err
}

// Attachments lists the stored attachments of a message by their parts.
func (s *Store) Attachments(ctx context.Context, email, message string) (all []jobs.Attachment, err error) {
	err = s.do(ctx, func(time.Time) error {
		if a := s.accounts[jobs.FoldAddress(email)]; a != nil {
			all = sorted(a.attachments[message])
		}
		return nil
	})
	return all, err
}

// SaveLabels records the labels that a mailbox has now.
func (s *Store) SaveLabels(ctx context.Context, ref jobs.TaskRef, labels []jobs.Label) error {
	_, err := s.owned(ctx, ref, "save labels", func(_ *job, a *account, _ time.Time) error {
		a.labels = slices.Clone(labels)
		return nil
	})
	return err
}

// Message returns a stored message with its attachments and the names of its labels, or
// [jobs.ErrNotFound].
func (s *Store) Message(ctx context.Context, email, id string) (jobs.Message, error) {
	m, err := s.Trace(ctx, email, id)
	if err == nil && (m.Stub || !m.DeletedAt.IsZero()) {
		err = fmt.Errorf("message %q of %s: %w", id, email, jobs.ErrNotFound)
	}
	if err != nil {
		return jobs.Message{}, err
	}
	if m.FullSHA256 != "" {
		if m.Attachments, err = s.Attachments(ctx, email, id); err != nil {
			return m, err
		}
	}
	return m, s.do(ctx, func(time.Time) error {
		names := map[string]string{}
		for _, l := range s.accounts[m.Account].labels {
			names[l.ID] = l.Name
		}
		for _, l := range m.Labels {
			if len(names) > 0 {
				m.LabelNames = append(m.LabelNames, names[l])
			}
		}
		return nil
	})
}

// Trace returns whatever is known of a message, also a tombstone or a stub, or
// [jobs.ErrNotFound].
func (s *Store) Trace(ctx context.Context, email, id string) (out jobs.Message, err error) {
	err = s.do(ctx, func(time.Time) error {
		a := s.accounts[jobs.FoldAddress(email)]
		if a == nil || a.messages[id] == nil {
			return fmt.Errorf("message %q of %s: %w", id, email, jobs.ErrNotFound)
		}
		out = shown(a.messages[id])
		return nil
	})
	return out, err
}

func shown(m *jobs.Message) jobs.Message {
	out := *m
	out.Labels = append([]string{}, m.Labels...)
	return out
}

// Messages lists the stored messages of an account by id, from those after afterID.
func (s *Store) Messages(ctx context.Context, email, afterID string, limit int) (all []jobs.Message, err error) {
	err = s.do(ctx, func(time.Time) error {
		a := s.accounts[jobs.FoldAddress(email)]
		if a == nil {
			return nil
		}
		for _, m := range sorted(a.messages) {
			if m.ID > afterID && m.DeletedAt.IsZero() && !m.Stub && len(all) < page(limit) {
				all = append(all, shown(m))
			}
		}
		return nil
	})
	return all, err
}

// StoredID returns the id of some message of an account whose body is stored, each
// time another if there are several, or [jobs.ErrNotFound].
func (s *Store) StoredID(ctx context.Context, email string) (id string, err error) {
	err = s.do(ctx, func(time.Time) error {
		if a := s.accounts[jobs.FoldAddress(email)]; a != nil {
			for _, m := range maps.All(a.messages) { // in random order
				if m.HasBody() && m.DeletedAt.IsZero() && !m.Stub {
					id = m.ID
					return nil
				}
			}
		}
		return fmt.Errorf("a stored message of %s: %w", email, jobs.ErrNotFound)
	})
	return id, err
}
