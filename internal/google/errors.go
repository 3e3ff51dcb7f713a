package google

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"google.golang.org/api/googleapi"

	"headroom/internal/lenient"
	"headroom/jobs"
	"headroom/quota"
)

var (
	errNoHistoryID = errors.New("the profile names no history id")
	errNoID        = errors.New("no message id")
	errNoMessage   = errors.New("the answer holds no message")
	errNoObject    = errors.New("the answer is no JSON object")
	errWrongID     = errors.New("the answer is about another message")
	errNoRaw       = errors.New("the answer holds no raw message")
)

// maxMessage bounds how much of Google's message goes into an error, in bytes.
const maxMessage = 500

// An answerError is a call's error in one line. It wraps Google's own error, which may
// have many lines.
type answerError struct {
	text string
	err  error
}

func (e *answerError) Error() string { return e.text }
func (e *answerError) Unwrap() error { return e.err }

// classify returns what the error of a call means. It returns the ledger's errors, and
// the error of ctx, the caller's context, as they are; everything else becomes a
// *jobs.CallError.
func (g *Google) classify(ctx context.Context, c call, err error) error {
	if err == nil {
		return nil
	}
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err // the outer text repeats the whole request
	}
	if isLedgers(err) {
		return err
	}
	if answer, ok := errors.AsType[*googleapi.Error](err); ok {
		return g.classifyAnswer(ctx, c, answer)
	}
	if ctx.Err() != nil {
		return err
	}
	if token, ok := errors.AsType[*tokenError](err); ok {
		return &jobs.CallError{Class: token.class, Reason: token.reason, Wait: token.wait, Err: token}
	}
	class, reason := sortBroken(c, err)
	return &jobs.CallError{Class: class, Reason: reason,
		Err: &answerError{text: fmt.Sprintf("%s: %s", c, oneLine(err.Error(), maxMessage)), err: err}}
}

func isLedgers(err error) bool {
	if _, denied := errors.AsType[*quota.DeniedError](err); denied {
		return true
	}
	return errors.Is(err, quota.ErrNeverFits) || errors.Is(err, quota.ErrUnavailable) ||
		errors.Is(err, quota.ErrNoCaller) || errors.Is(err, quota.ErrCaller) || errors.Is(err, quota.ErrUnknownProject)
}

// classifyAnswer classifies an HTTP status other than success: first as a refusal for
// quota, then by the table, if the answer is Google's.
func (g *Google) classifyAnswer(ctx context.Context, c call, answer *googleapi.Error) error {
	reasons := reasonsOf(answer)
	reason := http.StatusText(answer.Code)
	if len(reasons) > 0 {
		reason = reasons[0]
	}
	refusal := quota.Classify(answer.Code, answer.Header, []byte(answer.Body), time.Now(), g.opts.Ledger.Scale())
	class, hint, wait, limit := jobs.ClassTransient, "", time.Duration(0), ""
	switch {
	case refusal.Scope != quota.ScopeNone:
		class = jobs.ClassQuota
		wait, limit = g.cooldown(ctx, c, refusal)
		if refusal.Scope == quota.ScopeConcurrency {
			class = jobs.ClassConcurrency
		}
		if refusal.Reason != "" {
			reason = refusal.Reason
		}
	case len(reasons) > 0 || answer.Message != "":
		class, hint = classOf(c, answer.Code, reasons, answer.Message)
	case answer.Code == http.StatusTooManyRequests:
		class = jobs.ClassQuota
	}
	text := fmt.Sprintf("%s: HTTP %d %s", c, answer.Code, reason)
	if answer.Message != "" {
		text += ": " + oneLine(answer.Message, maxMessage)
	}
	if hint != "" {
		text += "; " + hint
	}
	return &jobs.CallError{Class: class, Reason: reason, Wait: wait, Limit: limit, Err: &answerError{text: text, err: answer}}
}

// cooldown says what refused a call, and for how long it is to wait: what the
// ledger, which was told of the refusal, has made of it.
func (g *Google) cooldown(ctx context.Context, c call, refusal quota.Refusal) (wait time.Duration, limit string) {
	about := quota.Cooldown{Scope: refusal.Scope, Feature: refusal.Feature, Reason: refusal.Reason, Words: refusal.Words}
	if refusal.Scope == quota.ScopeConcurrency {
		return refusal.Wait, about.String()
	}
	caller, _ := quota.CallerFrom(ctx)
	known, closed := g.opts.Ledger.Cooldown(caller, c.api())
	switch {
	case closed && known.Scope != quota.ScopeNone:
		return time.Until(known.Until), known.String()
	case closed:
		return time.Until(known.Until), about.String()
	case refusal.Feature != "":
		return time.Second, about.String()
	}
	return refusal.Wait, about.String()
}

// reasonsOf returns Google's reasons, those of errors[] first.
func reasonsOf(answer *googleapi.Error) []string {
	var reasons []string
	for _, item := range answer.Errors {
		if item.Reason != "" {
			reasons = append(reasons, item.Reason)
		}
	}
	for _, detail := range answer.Details {
		fields, _ := detail.(map[string]any)
		if reason, _ := fields["reason"].(string); reason != "" {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// sortBroken classifies faults without an error of Google's: on the network, or in a
// body that cannot be read. Nearly all of them may pass; a body about one item that
// cannot be read stays the same when it is requested again.
func sortBroken(c call, err error) (jobs.Class, string) {
	if field, ok := errors.AsType[*fieldError](err); ok {
		if c == callGet || c == callAttachment {
			return jobs.ClassItem, field.Error()
		}
		return jobs.ClassTransient, field.Error()
	}
	is := func(target error) bool { return errors.Is(err, target) }
	timeout, isNet := errors.AsType[net.Error](err)
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, kind := errors.AsType[*json.UnmarshalTypeError](err)
	_, corrupt := errors.AsType[base64.CorruptInputError](err)
	switch {
	case is(errTooLarge):
		return jobs.ClassItem, "tooLarge"
	case is(errNoID):
		return jobs.ClassItem, "noID"
	case is(errSlow):
		return jobs.ClassTransient, "tooSlow"
	case is(context.DeadlineExceeded), isNet && timeout.Timeout():
		return jobs.ClassTransient, "timeout"
	case is(io.ErrUnexpectedEOF), is(io.EOF):
		return jobs.ClassTransient, "truncated"
	case syntax, kind, is(errNoObject), is(lenient.ErrNull):
		return jobs.ClassTransient, "badJSON"
	case corrupt, is(errNoRaw), is(errTwoRaws):
		return jobs.ClassTransient, "badRaw"
	case is(errNoContent):
		return jobs.ClassTransient, "badAttachment"
	case is(errNoHistoryID), is(errNoHistory):
		return jobs.ClassTransient, "noHistoryID"
	case is(errNoLabels):
		return jobs.ClassTransient, "noLabels"
	case is(errNoMessage):
		return jobs.ClassTransient, "noMessage"
	case is(errNoItemID):
		return jobs.ClassTransient, "noItemID"
	case is(errWrongID):
		return jobs.ClassTransient, "wrongID"
	}
	return jobs.ClassTransient, "network"
}

// outcome returns what an error means, as a metric label.
func outcome(err error) string {
	if call, ok := errors.AsType[*jobs.CallError](err); ok {
		return string(call.Class)
	}
	if _, denied := errors.AsType[*quota.DeniedError](err); denied {
		return "denied"
	}
	switch {
	case err == nil:
		return "ok"
	case isLedgers(err):
		return "no-ledger"
	}
	return "canceled"
}
