package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"headroom/jobs"
)

// maxAttempts is how often a message is tried before it is given up into the
// job's failure list.
const maxAttempts = 5

// fetchItem fetches and stores one message. It returns what became of the item,
// or why the slice should end, or neither when the call was cut off by the
// process' stop, or never made because quit was closed.
func (s *slice) fetchItem(ctx, calls context.Context, quit <-chan struct{}, item jobs.Item) (*outcome, *ending) {
	s.metrics.inFlight.Inc()
	defer s.metrics.inFlight.Dec()

	becomes := jobs.ItemStored
	if s.job.Filter.Format == jobs.FormatMetadataFirst && !item.Noted {
		becomes = jobs.ItemNoted
	}
	var message *jobs.Message
	var unkept error
	err := s.call(calls, quit, func(calls context.Context) (err error) {
		if becomes == jobs.ItemNoted {
			message, err = s.note(calls, item.ID)
		} else {
			message, unkept, err = s.bring(ctx, calls, item.ID)
		}
		return err
	})
	switch {
	case err == nil && unkept == nil:
		return &outcome{item: item, result: jobs.Result{ID: item.ID, Outcome: becomes, Message: message}}, nil
	case ctx.Err() != nil:
		return nil, &ending{how: lost, err: context.Cause(ctx)}
	case unkept != nil:
		return nil, breaks(fmt.Errorf("store the body of message %s of %s: %w", item.ID, s.job.Account, unkept))
	case errors.Is(err, errOutside):
		return &outcome{item: item, result: jobs.Result{ID: item.ID, Outcome: jobs.ItemSkipped}}, nil
	case interrupted(calls), errors.Is(err, errNoTurn):
		return nil, nil
	}
	if end := endingOf(err, time.Now()); end != nil {
		return nil, end
	}
	return faulted(s.job.ID, item, err, time.Now()), nil
}

// errOutside says that a message is outside the job's filter.
var errOutside = errors.New("the message is outside the job's filter")

// errNoDate says that nobody can tell whether it is.
var errNoDate = &jobs.CallError{Class: jobs.ClassTransient, Reason: "noDate", Err: errors.New("the answer names no date")}

// bring fetches a message, keeps its bytes as they come in, and returns its row.
// Unkept is the error of whoever should have kept them, err that of the fetch.
func (s *slice) bring(ctx, calls context.Context, id string) (message *jobs.Message, unkept, err error) {
	var fetched jobs.Fetched
	in := &intake{most: s.job.Filter.MaxSize}
	sum, unkept := s.opts.Store.PutBlob(ctx, func(w io.Writer) error {
		in.to = w
		if fetched, err = s.box.Fetch(calls, id, in); err == nil {
			err = s.within(fetched, in.size)
		}
		return err
	})
	switch {
	case in.err != nil:
		return nil, in.err, nil
	case err != nil:
		return nil, nil, err
	case unkept != nil:
		return nil, unkept, nil
	}
	message = s.rowOf(id, fetched)
	message.Size, message.SHA256, message.ParseStatus = in.size, sum, jobs.Parsed
	if message.Subject, err = s.parse(in.head); err != nil {
		message.ParseStatus, message.ParseError = jobs.ParseFailed, clip(err.Error())
	}
	return message, nil, nil
}

// note fetches a message's metadata and returns its row.
func (s *slice) note(calls context.Context, id string) (*jobs.Message, error) {
	f, err := s.box.Metadata(calls, id)
	if err != nil {
		return nil, err
	}
	if err := s.within(f, f.SizeEstimate); err != nil {
		return nil, err
	}
	message := s.rowOf(id, f)
	message.Size, message.Subject, message.ParseStatus = f.SizeEstimate, f.Subject, jobs.ParseLater
	return message, nil
}

// within returns [errOutside] for a message that the job's filter does not let
// through.
func (s *slice) within(f jobs.Fetched, size int64) error {
	filter := s.job.Filter
	switch {
	case f.InternalDate.IsZero() && !(filter.After.IsZero() && filter.Before.IsZero()):
		return errNoDate
	case !filter.Lets(f.InternalDate, size):
		return errOutside
	}
	return nil
}

// rowOf is what a message's row has from Google's fields.
func (s *slice) rowOf(id string, f jobs.Fetched) *jobs.Message {
	return &jobs.Message{
		Account: s.job.Account, ID: id, ThreadID: f.ThreadID,
		HistoryID: f.HistoryID, InternalDate: f.InternalDate, Labels: f.Labels,
	}
}

// intake passes a message on as it comes in, and keeps what the parser will see
// of it.
type intake struct {
	to   io.Writer
	most int64 // bytes; a longer message is outside the filter; 0: any
	size int64
	head []byte
	err  error // of to
}

// Write implements [io.Writer].
func (in *intake) Write(p []byte) (int, error) {
	in.size += int64(len(p))
	if in.most > 0 && in.size > in.most {
		return 0, errOutside
	}
	if room := parsedBytes - len(in.head); room > 0 {
		in.head = append(in.head, p[:min(room, len(p))]...)
	}
	n, err := in.to.Write(p)
	if err != nil {
		in.err = err
	}
	return n, err
}

// parsedBytes is how much of a message is parsed. It bounds what parsers keep.
const parsedBytes = 1 << 20

// parse runs the parser at arm's length: it may panic, and may take too long.
// One that never returns keeps its goroutine and the start of the message, which
// becomes its own; neither can be taken from it.
func (h *handler) parse(head []byte) (subject string, err error) {
	type parsed struct {
		subject string
		err     error
	}
	result := make(chan parsed, 1)
	go func() {
		var p parsed
		defer func() {
			if r := recover(); r != nil {
				p = parsed{err: fmt.Errorf("the parser panicked: %v", r)}
			}
			result <- p
		}()
		p.subject, p.err = h.opts.Parser(head)
	}()
	timer := time.NewTimer(h.opts.ParseTime)
	defer timer.Stop()
	select {
	case p := <-result:
		return strings.ToValidUTF8(p.subject, "\uFFFD"), p.err
	case <-timer.C:
		h.metrics.parseTimeouts.Inc()
		return "", fmt.Errorf("the parser took longer than %s", h.opts.ParseTime)
	}
}

// faulted says what becomes of an item whose fetch went wrong in a way that may
// be its own: it is gone, or will never work, or is tried again later, each
// time later, until it is given up.
func faulted(job string, item jobs.Item, err error, now time.Time) *outcome {
	class, reason := sortFault(err)
	attempts := item.Attempts + 1
	out := &outcome{item: item, result: jobs.Result{ID: item.ID, Outcome: jobs.ItemFailed, Failure: &jobs.Failure{
		Job: job, ID: item.ID, Phase: "fetch", Class: class, Reason: reason,
		Attempts: attempts, FirstAt: now.UTC(), LastAt: now.UTC(),
	}}}
	switch class {
	case jobs.ClassGone:
		out.result = jobs.Result{ID: item.ID, Outcome: jobs.ItemGone}
	case jobs.ClassItem:
	default:
		out.fault = true
		if attempts < maxAttempts {
			wait := backoff(time.Second, item.Attempts)
			out.result.Outcome = jobs.ItemDeferred
			out.result.RetryAt = now.Add(wait - jitter(wait/4)).UTC()
		}
	}
	return out
}

// sortFault returns the class of a fetch's error and Google's reason, or the
// error's text where there is none.
func sortFault(err error) (jobs.Class, string) {
	class, reason := jobs.ClassTransient, ""
	if call, ok := errors.AsType[*jobs.CallError](err); ok {
		class, reason = call.Class, call.Reason
	}
	if reason == "" {
		reason = err.Error()
	}
	return class, clip(reason)
}

// clip bounds a text that came from outside.
func clip(text string) string {
	const most = 500
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
