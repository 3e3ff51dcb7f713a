package wire

import (
	"net/http"
	"time"
)

// An Error is an error answer in Google's envelope.
type Error struct {
	Code    int         `json:"code"`
	Message string      `json:"message"`
	Errors  []errorItem `json:"errors"`
	Status  string      `json:"status,omitempty"`
	Details []any       `json:"details,omitempty"`
}

type errorItem struct {
	Message      string `json:"message"`
	Domain       string `json:"domain"`
	Reason       string `json:"reason"`
	Location     string `json:"location,omitempty"`
	LocationType string `json:"locationType,omitempty"`
}

// NewError makes an envelope with one item whose message is that of the whole.
func NewError(code int, domain, reason, message string) *Error {
	return &Error{
		Code: code, Message: message, Status: StatusName(code),
		Errors: []errorItem{{Message: message, Domain: domain, Reason: reason}},
	}
}

// StatusName is the canonical code that Google pairs with an HTTP status.
func StatusName(code int) string {
	switch code {
	case http.StatusBadRequest:
		return "INVALID_ARGUMENT"
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusConflict, http.StatusGone:
		return "ABORTED"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusNotImplemented:
		return "UNIMPLEMENTED"
	case http.StatusServiceUnavailable:
		return "UNAVAILABLE"
	case http.StatusGatewayTimeout:
		return "DEADLINE_EXCEEDED"
	default:
		return "INTERNAL"
	}
}

// BadRequest is the answer to a request that cannot be served as it is.
func BadRequest(message string) *Error {
	return NewError(http.StatusBadRequest, "global", "invalidArgument", message)
}

func invalidParameter(message string) *Error {
	return NewError(http.StatusBadRequest, "global", "invalidParameter", message)
}

// NotFound is the answer to a call for what is not there.
func NotFound() *Error {
	return NewError(http.StatusNotFound, "global", "notFound", "Requested entity was not found.")
}

// InvalidCredentials is the answer to a call whose token or address is unknown.
func InvalidCredentials() *Error {
	e := NewError(http.StatusUnauthorized, "global", "authError", "Invalid Credentials")
	e.Errors[0].Location, e.Errors[0].LocationType = "Authorization", "header"
	return e
}

// DelegationDenied names the user of the token, as Google does, not the mailbox
// that was asked for.
func DelegationDenied(user string) *Error {
	return NewError(http.StatusForbidden, "global", "forbidden", "Delegation denied for "+user)
}

// NamedError returns the answer that a fault can script by reason alone. Messages
// are Google's where its documentation or a capture has them.
func NamedError(reason string) (*Error, bool) {
	usage := func(code int, message string) *Error { return NewError(code, "usageLimits", reason, message) }
	global := func(code int, message string) *Error { return NewError(code, "global", reason, message) }
	switch reason {
	case "rateLimitExceeded":
		return usage(http.StatusForbidden, "Rate Limit Exceeded"), true
	case "userRateLimitExceeded":
		return usage(http.StatusForbidden, "User Rate Limit Exceeded"), true
	case "quotaExceeded":
		return usage(http.StatusForbidden, "Calendar usage limits exceeded."), true
	case "dailyLimitExceeded":
		return usage(http.StatusForbidden, "Daily Limit Exceeded"), true
	case "accessNotConfigured":
		return serviceDisabled(), true
	case "domainPolicy":
		return global(http.StatusForbidden, "The domain administrators have disabled Gmail apps."), true
	case "forbidden":
		return global(http.StatusForbidden, "Forbidden"), true
	case "insufficientPermissions":
		return insufficientScopes(), true
	case "authError":
		return InvalidCredentials(), true
	case "failedPrecondition":
		e := global(http.StatusBadRequest, "Mail service not enabled")
		e.Status = "FAILED_PRECONDITION"
		return e, true
	case "badRequest", "invalidArgument":
		return global(http.StatusBadRequest, "Bad Request"), true
	case "invalidPageToken":
		return BadRequest("Invalid pageToken"), true
	case "notFound":
		return NotFound(), true
	case "fullSyncRequired":
		return global(http.StatusGone, "Sync token is no longer valid, a full sync is required."), true
	case "updatedMinTooLongAgo":
		return global(http.StatusGone, "The requested minimum modification time lies too far in the past."), true
	case "deleted":
		return global(http.StatusGone, "Resource has been deleted"), true
	case "backendError":
		return global(http.StatusInternalServerError, "Backend Error"), true
	}
	return nil, false
}

func insufficientScopes() *Error {
	e := NewError(http.StatusForbidden, "global", "insufficientPermissions", "Request had insufficient authentication scopes.")
	e.Errors[0].Message = "Insufficient Permission"
	e.Details = []any{ErrorInfo{
		Type: ErrorInfoType, Reason: "ACCESS_TOKEN_SCOPE_INSUFFICIENT", Domain: "googleapis.com",
		Metadata: map[string]string{"service": "gmail.googleapis.com"},
	}}
	return e
}

func serviceDisabled() *Error {
	const url = "https://console.developers.google.com/apis/api/gmail.googleapis.com/overview?project=" + ProjectNumber
	e := NewError(http.StatusForbidden, "usageLimits", "accessNotConfigured",
		"Gmail API has not been used in project "+ProjectNumber+" before or it is disabled. Enable it by visiting "+url+
			" then retry. If you enabled this API recently, wait a few minutes for the action to propagate to our systems and retry.")
	e.Details = []any{ErrorInfo{
		Type: ErrorInfoType, Reason: "SERVICE_DISABLED", Domain: "googleapis.com",
		Metadata: map[string]string{"service": "gmail.googleapis.com", "consumer": "projects/" + ProjectNumber},
	}}
	return e
}

// RetryAfterError is the older limiter's answer: the moment stands in the text,
// after two spaces, and in no header.
func RetryAfterError(at time.Time) *Error {
	const layout = "2006-01-02T15:04:05.000Z"
	return NewError(http.StatusTooManyRequests, "usageLimits", "rateLimitExceeded",
		"User-rate limit exceeded.  Retry after "+at.UTC().Format(layout))
}
