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

	var g fetched
	err := s.call(calls, quit, func(calls context.Context) (err error) {
		g, err = s.get(ctx, calls, item)
		return err
	})
	return s.becomes(ctx, calls, item, g, err)
}

// fetched is what a fetch brought.
type fetched struct {
	outcome jobs.Outcome
	message *jobs.Message
}

// A storeError is an error of our own store or blob folder during a fetch, as opposed
// to one of Google's.
type storeError struct{ error }

func (e *storeError) Unwrap() error { return e.error }

func isStoreError(err error) bool {
	_, ok := errors.AsType[*storeError](err)
	return ok
}

// storeFailed returns err as a [storeError]; nil stays nil.
func storeFailed(err error) error {
	if err == nil {
		return nil
	}
	return &storeError{err}
}

// get fetches what the job wants next of an item.
func (s *slice) get(ctx, calls context.Context, item jobs.Item) (fetched, error) {
	switch f := s.job.Filter.Format; {
	case s.oversize(item.Size): // nothing to ask for
		return fetched{outcome: jobs.ItemOversize}, nil
	case f == jobs.FormatFull:
		return s.fetchFull(ctx, calls, item.ID)
	case f == jobs.FormatMetadataFirst && !item.Noted:
		return s.note(calls, item.ID, 0)
	}
	g, err := s.fetchRaw(ctx, calls, item.ID)
	if large, ok := errors.AsType[*oversizeError](err); ok {
		return s.note(calls, item.ID, large.seen)
	}
	return g, err
}

// oversize reports whether a raw message is too large for its body to be brought.
func (s *slice) oversize(size int64) bool {
	return s.opts.MaxMessageBytes > 0 && size > s.opts.MaxMessageBytes
}

// an oversizeError says that a message turned out to be oversize.
type oversizeError struct{ seen int64 } // bytes, at least

func (e *oversizeError) Error() string {
	return fmt.Sprintf("the message has %d bytes at least, which is more than the settings let through", e.seen)
}

// becomes says what becomes of an item whose fetch brought g or failed with err, or
// how the slice ends.
func (s *slice) becomes(ctx, calls context.Context, item jobs.Item, g fetched, err error) (*outcome, *ending) {
	switch {
	case err == nil:
		return &outcome{item: item, result: jobs.Result{ID: item.ID, Outcome: g.outcome, Message: g.message}}, nil
	case ctx.Err() != nil:
		return nil, &ending{how: lost, err: context.Cause(ctx)}
	case isStoreError(err):
		return nil, breaks(fmt.Errorf("store the body of message %s of %s: %w", item.ID, s.job.Account, err))
	case errors.Is(err, errOutside):
		return &outcome{item: item, result: jobs.Result{ID: item.ID, Outcome: jobs.ItemSkipped}}, nil
	case interrupted(calls), errors.Is(err, errNoTurn):
		return nil, nil
	}
	if end := s.endingOfItem(ctx, calls, err); end != nil {
		return nil, end
	}
	return faulted(s.ref, item, err, time.Now()), nil
}

// errOutside says that a message is outside the job's filter.
var errOutside = errors.New("the message is outside the job's filter")

// errNoDate says that nobody can tell whether it is.
var errNoDate = &jobs.CallError{Class: jobs.ClassItem, Reason: "noDate", Err: errors.New("the answer names no date")}

// fetchRaw fetches a raw message and stores its bytes as they come in. The error is an
// [*oversizeError] once there are too many.
func (s *slice) fetchRaw(ctx, calls context.Context, id string) (fetched, error) {
	w := s.opts.Blobs.Create(ctx)
	defer w.Close()
	in := &intake{to: w, most: s.job.Filter.MaxSize, bound: s.opts.MaxMessageBytes}
	f, err := s.box.Fetch(calls, id, in)
	if err != nil {
		return fetched{}, err
	}
	if err := s.within(f, in.size); err != nil {
		return fetched{}, err
	}
	sum, err := w.Commit()
	if err != nil {
		return fetched{}, storeFailed(err)
	}
	message := s.rowOf(id, f)
	message.Size, message.SHA256, message.ParseStatus = in.size, sum, jobs.Parsed
	if message.Subject, err = s.parse(in.head); err != nil {
		message.ParseStatus, message.ParseError = jobs.ParseFailed, clip(err.Error())
	}
	return fetched{outcome: jobs.ItemStored, message: message}, nil
}

// note fetches a message's metadata. Seen is how many bytes the message is known to
// have, at least.
func (s *slice) note(calls context.Context, id string, seen int64) (fetched, error) {
	f, err := s.box.Metadata(calls, id)
	if err != nil {
		return fetched{}, err
	}
	return s.noted(f, seen)
}

func (s *slice) noted(f jobs.Fetched, seen int64) (fetched, error) {
	size := max(f.SizeEstimate, seen)
	if err := s.within(f, size); err != nil {
		return fetched{}, err
	}
	message := s.rowOf(f.ID, f)
	message.Size, message.Subject, message.ParseStatus = size, f.Subject, jobs.ParseLater
	if s.oversize(size) {
		message.ParseStatus = jobs.ParseNever
		return fetched{outcome: jobs.ItemOversize, message: message}, nil
	}
	return fetched{outcome: jobs.ItemNoted, message: message}, nil
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
	to    io.Writer // its errors are a [storeError]
	most  int64     // bytes; a longer message is outside the filter; 0: any
	bound int64     // bytes; a longer message is oversize; 0: any
	size  int64
	head  []byte
}

// Write implements [io.Writer].
func (in *intake) Write(p []byte) (int, error) {
	in.size += int64(len(p))
	if in.most > 0 && in.size > in.most {
		return 0, errOutside
	}
	if in.bound > 0 && in.size > in.bound {
		return 0, &oversizeError{in.size}
	}
	if room := parsedBytes - len(in.head); room > 0 {
		in.head = append(in.head, p[:min(room, len(p))]...)
	}
	n, err := in.to.Write(p)
	return n, storeFailed(err)
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
func faulted(ref jobs.TaskRef, item jobs.Item, err error, now time.Time) *outcome {
	class, reason := sortFault(err)
	attempts := item.Attempts + 1
	out := &outcome{item: item, result: jobs.Result{ID: item.ID, Outcome: jobs.ItemFailed, Failure: &jobs.Failure{
		Job: ref.Job, ID: item.ID, Phase: "fetch", Class: class, Reason: reason,
		Attempts: attempts, FirstAt: now.UTC(), LastAt: now.UTC(),
	}}}
	switch class {
	case jobs.ClassGone:
		if wait, again := jobs.GoneAgain(ref.Kind, item.Attempts); again {
			out.result.Outcome, out.result.RetryAt = jobs.ItemDeferred, now.Add(wait).UTC()
			break
		}
		out.result = jobs.Result{ID: item.ID, Outcome: jobs.ItemGone}
	case jobs.ClassItem:
	default:
		out.fault = err
		if blames(err) { // the account answers other calls, so this is the item's own
			out.result.Failure.Class = jobs.ClassForbidden
		}
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
