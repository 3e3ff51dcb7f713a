package gmail

import (
	"net/http"
	"time"

	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/meter"
	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

// Answer serves an operation. The error of a mailbox that is not the caller's, or
// of a body that is too large, is part of the reply.
func (op Operation) Answer(r *http.Request, box *Mailbox, quirk fault.Quirk) wire.Reply {
	if op.UserID != "me" && wire.AddressKey(op.UserID) != wire.AddressKey(box.email) {
		return wire.RenderError(r, wire.DelegationDenied(box.email))
	}
	body, err := wire.ReadAtMost(r.Body, op.largestBody())
	if err != nil {
		return wire.RenderError(r, wire.BadRequest(err.Error()))
	}
	answer, failure := op.serve(box, page.Request{Values: r.URL.Query(), Quirk: quirk, Body: body, Kind: r.Header.Get("Content-Type")}.WithFirst(tokenEncoding))
	return wire.Render(r, answer, failure, quirk.Edit)
}

// Refuse is the answer to a call that the meter refused. No shape has a
// Retry-After header; limits are those that refused. sayWindow puts the start of
// the window into the answer where one is known, which Google does about one
// time in three.
func Refuse(v meter.Verdict, prices string, sayWindow bool) *wire.Error {
	switch v.Refused {
	case meter.RefusedConcurrency:
		return wire.TooManyConcurrent()
	case meter.RefusedBytes, meter.RefusedEarly:
		return wire.RetryAfterError(v.RetryAt)
	}
	perUser := v.Refused == meter.RefusedUserUnits
	if prices == "gmail-legacy" {
		return wire.LegacyUnitsError(perUser)
	}
	var window time.Time
	if sayWindow {
		window = v.WindowStart
	}
	return wire.UnitsError(perUser, v.Limit, window)
}
