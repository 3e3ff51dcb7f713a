package fault

import (
	"cmp"
	"maps"
	"net/http"
	"strconv"
	"time"

	"headroom/internal/lab/fakegoogle/meter"
	"headroom/internal/lab/fakegoogle/wire"
)

// faultReply makes the answer that a fault scripts.
func faultReply(r *http.Request, f Fault) wire.Reply {
	var a wire.Reply
	switch {
	case f.HTML:
		status := cmp.Or(f.Status, http.StatusBadGateway)
		a = wire.Reply{Status: status, ContentType: "text/html; charset=UTF-8", Body: errorPage(status)}
		if f.Body != "" {
			a.Body = []byte(f.Body)
		}
	case f.Body != "":
		a = wire.Reply{Status: cmp.Or(f.Status, http.StatusOK), ContentType: wire.JSONType, Body: []byte(f.Body)}
	default:
		e, _ := faultError(f)
		a = wire.RenderError(r, e)
	}
	a.Header = maps.Clone(f.Headers)
	if value := f.retryAfter(time.Now()); value != "" {
		if a.Header == nil {
			a.Header = map[string]string{}
		}
		a.Header["Retry-After"] = value
	}
	return a
}

// retryAfter is the header that names the moment RetryAfterMS ahead; "" where it
// stands in the text.
func (f Fault) retryAfter(now time.Time) string {
	switch f.RetryAs {
	case RetryAsSeconds:
		return strconv.FormatInt((int64(f.RetryAfterMS)+999)/1000, 10)
	case RetryAsDate:
		return now.Add(f.Wait()).UTC().Format(http.TimeFormat)
	}
	return ""
}

// Wait is how far ahead the moment lies that the answer names.
func (f Fault) Wait() time.Duration { return time.Duration(f.RetryAfterMS) * time.Millisecond }

// inText reports whether the moment stands in the message.
func (f Fault) inText() bool {
	return f.RetryAfterMS != 0 && (f.RetryAs == "" || f.RetryAs == RetryAsText)
}

// faultError makes the envelope of a fault, and reports whether its reason is
// one the fake knows.
func faultError(f Fault) (*wire.Error, bool) {
	reason := f.Reason
	if reason == "" && f.inText() {
		reason = string(meter.RefusedBytes)
	} else if reason == "" {
		reason = defaultReason(f.Status)
	}
	e, known := wire.NamedError(reason)
	if !known {
		e, known = f.refusalNamed(meter.Refusal(reason))
	}
	if !known {
		e = wire.NewError(http.StatusInternalServerError, "global", reason, reason)
	}
	if f.Status != 0 && f.Status != e.Code {
		e.Code, e.Status = f.Status, wire.StatusName(f.Status)
	}
	message := f.Message
	if message == "" && f.inText() {
		message = wire.RetryAfterError(time.Now().Add(f.Wait())).Message
	}
	if message != "" {
		e.Message, e.Errors[0].Message = message, message
	}
	if f.Bare {
		e.Status, e.Details = "", nil
	}
	return e, known
}

// refusalNamed makes a refusal of the meter, or of one of Google's other limits,
// without its being one.
func (f Fault) refusalNamed(name meter.Refusal) (*wire.Error, bool) {
	var window time.Time
	if f.WindowAgeMS > 0 {
		window = time.Now().Add(-time.Duration(f.WindowAgeMS) * time.Millisecond)
	}
	switch name {
	case meter.RefusedUserUnits:
		return wire.UnitsError(true, 6_000, window), true
	case meter.RefusedProjectUnits:
		return wire.UnitsError(false, 1_200_000, window), true
	case meter.RefusedConcurrency:
		return wire.TooManyConcurrent(), true
	case meter.RefusedBytes, meter.RefusedEarly:
		return wire.RetryAfterError(time.Now().Add(f.Wait())), true
	case "legacyUserUnits":
		return wire.LegacyUnitsError(true), true
	case "legacyProjectUnits":
		return wire.LegacyUnitsError(false), true
	case "calendarUserQueries":
		return wire.QuotaError("metric 'Queries'", "Queries per minute per user", wire.CalendarService), true
	case "calendarProjectQueries":
		return wire.QuotaError("metric 'Queries'", "Queries per minute", wire.CalendarService), true
	case "queriesPerDay":
		return wire.QuotaError("metric 'Queries'", "Queries per day", wire.CalendarService), true
	case "quotaGroupUser":
		return wire.QuotaError("group 'default'", "Queries per user per 100 seconds", wire.CalendarService), true
	case "quotaGroupProject":
		return wire.QuotaError("group 'default'", "Queries per 100 seconds", wire.CalendarService), true // unverified
	case "resourceExhausted":
		return wire.NewError(http.StatusTooManyRequests, "global", "rateLimitExceeded", "Resource has been exhausted (e.g. check quota)."), true
	}
	return nil, false
}
