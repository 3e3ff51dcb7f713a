package workers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

	var message *jobs.Message
	var unkept error
	err := s.call(calls, quit, func(calls context.Context) error {
		return s.box.Fetch(calls, item.ID, func(f jobs.Fetched) error {
			message, unkept = s.keep(ctx, item.ID, f)
			return unkept
		})
	})
	switch {
	case err == nil && message != nil:
		return &outcome{item: item, result: jobs.Result{ID: item.ID, Outcome: jobs.ItemStored, Message: message}}, nil
	case ctx.Err() != nil:
		return nil, &ending{how: lost, err: context.Cause(ctx)}
	case unkept != nil:
		return nil, breaks(unkept)
	case interrupted(calls), errors.Is(err, errNoTurn):
		return nil, nil
	case err == nil:
		err = errors.New("the mailbox returned no message")
	}
	if end := endingOf(err, time.Now()); end != nil {
		return nil, end
	}
	return faulted(s.job.ID, item, err, time.Now()), nil
}

// keep stores a fetched message's bytes and returns its row.
func (s *slice) keep(ctx context.Context, id string, f jobs.Fetched) (*jobs.Message, error) {
	sum, err := s.opts.Store.PutBlob(ctx, f.Raw)
	if err != nil {
		return nil, fmt.Errorf("store the body of message %s of %s: %w", id, s.job.Account, err)
	}
	m := &jobs.Message{
		Account: s.job.Account, ID: id, ThreadID: f.ThreadID,
		HistoryID: f.HistoryID, InternalDate: f.InternalDate, Labels: f.Labels,
		Size: int64(len(f.Raw)), SHA256: sum, ParseStatus: jobs.Parsed,
	}
	m.Subject, err = s.parse(f.Raw)
	if err != nil {
		m.ParseStatus, m.ParseError = jobs.ParseFailed, clip(err.Error())
	}
	return m, nil
}

// parsedBytes is how much of a message is parsed. It bounds the copies that
// parsers work on, which the byte budget of messages in flight does not count.
const parsedBytes = 1 << 20

// parse runs the parser at arm's length: it may panic, and may take too long.
// One that never returns keeps its goroutine and its own copy of the message;
// neither can be taken from it.
func (h *handler) parse(raw []byte) (subject string, err error) {
	type parsed struct {
		subject string
		err     error
	}
	result, own := make(chan parsed, 1), bytes.Clone(raw[:min(len(raw), parsedBytes)])
	go func() {
		var p parsed
		defer func() {
			if r := recover(); r != nil {
				p = parsed{err: fmt.Errorf("the parser panicked: %v", r)}
			}
			result <- p
		}()
		p.subject, p.err = h.opts.Parser(own)
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
