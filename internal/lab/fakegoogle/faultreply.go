package fakegoogle

import (
	"cmp"
	"maps"
	"net/http"
	"strconv"
	"time"
)

// faultReply makes the answer that a fault scripts.
func faultReply(r *http.Request, f Fault) reply {
	var a reply
	switch {
	case f.HTML:
		status := cmp.Or(f.Status, http.StatusBadGateway)
		a = reply{status: status, contentType: "text/html; charset=UTF-8", body: errorPage(status)}
		if f.Body != "" {
			a.body = []byte(f.Body)
		}
	case f.Body != "":
		a = reply{status: cmp.Or(f.Status, http.StatusOK), contentType: jsonType, body: []byte(f.Body)}
	default:
		e, _ := faultError(f)
		a = renderError(r, e)
	}
	a.header = maps.Clone(f.Headers)
	if value := f.retryAfter(time.Now()); value != "" {
		if a.header == nil {
			a.header = map[string]string{}
		}
		a.header["Retry-After"] = value
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
		return now.Add(f.wait()).UTC().Format(http.TimeFormat)
	}
	return ""
}

// wait is how far ahead the moment lies that the answer names.
func (f Fault) wait() time.Duration { return time.Duration(f.RetryAfterMS) * time.Millisecond }

// inText reports whether the moment stands in the message.
func (f Fault) inText() bool {
	return f.RetryAfterMS != 0 && (f.RetryAs == "" || f.RetryAs == RetryAsText)
}

// faultError makes the envelope of a fault, and reports whether its reason is
// one the fake knows.
func faultError(f Fault) (*apiError, bool) {
	reason := f.Reason
	if reason == "" && f.inText() {
		reason = string(RefusedBytes)
	} else if reason == "" {
		reason = defaultReason(f.Status)
	}
	e, known := namedError(reason)
	if !known {
		e, known = f.refusalNamed(Refusal(reason))
	}
	if !known {
		e = newError(http.StatusInternalServerError, "global", reason, reason)
	}
	if f.Status != 0 && f.Status != e.Code {
		e.Code, e.Status = f.Status, statusName(f.Status)
	}
	message := f.Message
	if message == "" && f.inText() {
		message = retryAfterError(time.Now().Add(f.wait())).Message
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
func (f Fault) refusalNamed(name Refusal) (*apiError, bool) {
	var window time.Time
	if f.WindowAgeMS > 0 {
		window = time.Now().Add(-time.Duration(f.WindowAgeMS) * time.Millisecond)
	}
	switch name {
	case RefusedUserUnits:
		return unitsError(true, 6_000, window), true
	case RefusedProjectUnits:
		return unitsError(false, 1_200_000, window), true
	case RefusedConcurrency:
		return tooManyConcurrent(), true
	case RefusedBytes, RefusedEarly:
		return retryAfterError(time.Now().Add(f.wait())), true
	case "legacyUserUnits":
		return legacyUnitsError(true), true
	case "legacyProjectUnits":
		return legacyUnitsError(false), true
	case "calendarUserQueries":
		return quotaError("metric 'Queries'", "Queries per minute per user", calendarService), true
	case "calendarProjectQueries":
		return quotaError("metric 'Queries'", "Queries per minute", calendarService), true
	case "queriesPerDay":
		return quotaError("metric 'Queries'", "Queries per day", calendarService), true
	case "quotaGroupUser":
		return quotaError("group 'default'", "Queries per user per 100 seconds", calendarService), true
	case "quotaGroupProject":
		return quotaError("group 'default'", "Queries per 100 seconds", calendarService), true // unverified
	case "resourceExhausted":
		return newError(http.StatusTooManyRequests, "global", "rateLimitExceeded", "Resource has been exhausted (e.g. check quota)."), true
	}
	return nil, false
}
