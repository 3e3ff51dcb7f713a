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

// An outcome is what became of a fetched item.
type outcome struct {
	item   jobs.Item
	result jobs.Result
	fault  error // of Google or of the item, which is not known yet; nil: none
}

// fetched is what a fetch brought.
type fetched struct {
	outcome jobs.Outcome
	message *jobs.Message
}

// A storeError is an error of our own store or blob folder during a call, as opposed
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

// fetchMessage fetches and stores one message. It returns the outcome of the item, or
// why the slice is over, or neither when the call was cut off because the process stops,
// or not made because quit was closed.
func (m *mailRun) fetchMessage(ctx context.Context, quit <-chan struct{}, item jobs.Item) (*outcome, result) {
	m.metrics.inFlight.Inc()
	defer m.metrics.inFlight.Dec()
	got, err := m.fetchNext(ctx, quit, item)
	return m.outcomeOf(ctx, item, got, err)
}

// fetchNext fetches what the job wants next of an item.
func (m *mailRun) fetchNext(ctx context.Context, quit <-chan struct{}, item jobs.Item) (fetched, error) {
	switch f := m.job.Filter.Format; {
	case m.oversize(item.Size): // nothing to ask for
		return fetched{outcome: jobs.ItemOversize}, nil
	case f == jobs.FormatFull:
		return m.fetchFull(ctx, quit, item.ID)
	case f == jobs.FormatMetadataFirst && !item.Noted:
		return m.fetchMetadata(quit, item.ID, 0)
	}
	got, err := m.fetchRaw(quit, item.ID)
	if large, ok := errors.AsType[*oversizeError](err); ok {
		return m.fetchMetadata(quit, item.ID, large.seen)
	}
	return got, err
}

// fetchRaw fetches a raw message and stores its bytes as they come in. The error is an
// [*oversizeError] once there are too many.
func (m *mailRun) fetchRaw(quit <-chan struct{}, id string) (fetched, error) {
	return get(m.slice, quit, func(ctx context.Context) (fetched, error) {
		w := m.opts.Blobs.Create(ctx)
		defer w.Close()
		in := &intake{to: w, most: m.job.Filter.MaxSize, bound: m.opts.MaxMessageBytes}
		f, err := m.box.Fetch(ctx, id, in)
		if err != nil {
			return fetched{}, err
		}
		if err := m.checkFilter(f, in.size); err != nil {
			return fetched{}, err
		}
		sum, err := w.Commit()
		if err != nil {
			return fetched{}, storeFailed(err)
		}
		message := m.rowOf(id, f)
		message.Size, message.SHA256, message.ParseStatus = in.size, sum, jobs.Parsed
		if message.Subject, err = m.parse(in.head); err != nil {
			message.ParseStatus, message.ParseError = jobs.ParseFailed, clip(err.Error())
		}
		return fetched{outcome: jobs.ItemStored, message: message}, nil
	})
}

// fetchMetadata fetches a message's metadata. Seen is how many bytes the message is
// known to have, at least.
func (m *mailRun) fetchMetadata(quit <-chan struct{}, id string, seen int64) (fetched, error) {
	f, err := get(m.slice, quit, func(ctx context.Context) (jobs.Fetched, error) { return m.box.Metadata(ctx, id) })
	if err != nil {
		return fetched{}, err
	}
	return m.metadataOf(f, seen)
}

// metadataOf is what is stored of a message without its body.
func (m *mailRun) metadataOf(f jobs.Fetched, seen int64) (fetched, error) {
	size := max(f.SizeEstimate, seen)
	if err := m.checkFilter(f, size); err != nil {
		return fetched{}, err
	}
	message := m.rowOf(f.ID, f)
	message.Size, message.Subject, message.ParseStatus = size, f.Subject, jobs.ParseLater
	if m.oversize(size) {
		message.ParseStatus = jobs.ParseNever
		return fetched{outcome: jobs.ItemOversize, message: message}, nil
	}
	return fetched{outcome: jobs.ItemNoted, message: message}, nil
}

// oversize reports whether a raw message is too large for its body to be fetched.
func (m *mailRun) oversize(size int64) bool {
	return m.opts.MaxMessageBytes > 0 && size > m.opts.MaxMessageBytes
}

// An oversizeError says that a message turned out to be oversize.
type oversizeError struct{ seen int64 } // bytes, at least

func (e *oversizeError) Error() string {
	return fmt.Sprintf("the message has %d bytes at least, which is more than the settings let through", e.seen)
}

// errOutside says that a message is outside the job's filter.
var errOutside = errors.New("the message is outside the job's filter")

// errNoDate says that it is not known whether a message is outside the filter.
var errNoDate = &jobs.CallError{Class: jobs.ClassItem, Reason: "noDate", Err: errors.New("the answer names no date")}

// checkFilter returns [errOutside] for a message that the job's filter does not let
// through.
func (m *mailRun) checkFilter(f jobs.Fetched, size int64) error {
	filter := m.job.Filter
	switch {
	case f.InternalDate.IsZero() && !(filter.After.IsZero() && filter.Before.IsZero()):
		return errNoDate
	case !filter.Lets(f.InternalDate, size):
		return errOutside
	}
	return nil
}

// rowOf is what a message's row has from Google's fields.
func (m *mailRun) rowOf(id string, f jobs.Fetched) *jobs.Message {
	return &jobs.Message{
		Account: m.job.Account, ID: id, ThreadID: f.ThreadID,
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

// outcomeOf returns the outcome of an item whose fetch brought got or failed with err,
// or why the slice is over, or neither when the call was cut off or not made.
func (m *mailRun) outcomeOf(ctx context.Context, item jobs.Item, got fetched, err error) (*outcome, result) {
	switch {
	case err == nil:
		return &outcome{item: item, result: jobs.Result{ID: item.ID, Outcome: got.outcome, Message: got.message}}, result{}
	case ctx.Err() != nil:
		return nil, lostFor(ctx)
	case isStoreError(err):
		return nil, failed(fmt.Errorf("store the body of message %s of %s: %w", item.ID, m.job.Account, err))
	case errors.Is(err, errOutside):
		return &outcome{item: item, result: jobs.Result{ID: item.ID, Outcome: jobs.ItemSkipped}}, result{}
	case m.calls.interrupted(), errors.Is(err, errNoTurn):
		return nil, result{}
	}
	if r := m.access.resultOf(ctx, m.slice, err); r.stops() {
		return nil, r
	}
	return faultOf(m.ref, item, err, m.now()), result{}
}
