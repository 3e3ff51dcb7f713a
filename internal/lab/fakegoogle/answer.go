package fakegoogle

import (
	"net/http"
	"time"
)

// answer serves an operation. The error of a mailbox that is not the caller's, or
// of a body that is too large, is part of the reply.
func (op operation) answer(r *http.Request, box *Mailbox, odd Oddity) reply {
	if op.userID != "me" && mailboxKey(op.userID) != mailboxKey(box.email) {
		return renderError(r, delegationDenied(box.email))
	}
	body, err := readAtMost(r.Body, op.largestBody())
	if err != nil {
		return renderError(r, badRequest(err.Error()))
	}
	answer, failure := op.serve(box, withFirstMailParams(ask{Values: r.URL.Query(), odd: odd, body: body, kind: r.Header.Get("Content-Type")}))
	return render(r, answer, failure, odd.Edit)
}

// refusalError is the answer to a call that the meter refused. No shape has a
// Retry-After header; limits are those that refused. sayWindow puts the start of
// the window into the answer where one is known, which Google does about one
// time in three.
func refusalError(v verdict, prices string, sayWindow bool) *apiError {
	switch v.refused {
	case RefusedConcurrency:
		return tooManyConcurrent()
	case RefusedBytes, RefusedEarly:
		return retryAfterError(v.retryAt)
	}
	perUser := v.refused == RefusedUserUnits
	if prices == "gmail-legacy" {
		return legacyUnitsError(perUser)
	}
	var window time.Time
	if sayWindow {
		window = v.windowStart
	}
	return unitsError(perUser, v.limit, window)
}
