package wire

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// ProjectNumber stands for the consumer's number in every answer, redacted as in
// the captures that the answers come from.
const ProjectNumber = "000000000000"

// ErrorInfoType is the type of an [ErrorInfo].
const ErrorInfoType = "type.googleapis.com/google.rpc.ErrorInfo"

// An ErrorInfo is the detail of an error that programs read.
type ErrorInfo struct {
	Type     string            `json:"@type"`
	Reason   string            `json:"reason"`
	Domain   string            `json:"domain"`
	Metadata map[string]string `json:"metadata"`
}

type help struct {
	Type  string     `json:"@type"`
	Links []helpLink `json:"links"`
}

type helpLink struct {
	Description string `json:"description"`
	URL         string `json:"url"`
}

// LegacyUnitsError is the refusal of projects with the older prices.
func LegacyUnitsError(perUser bool) *Error {
	if perUser {
		return QuotaError("metric 'Queries'", "Previous quota: Units per minute per user", gmailService)
	}
	return QuotaError("metric 'Queries'", "Previous quota: Units per minute", gmailService) // unverified
}

// UnitsError is the usual refusal: 403, never 429. The form for a whole project
// is unverified; it is the user's with the name and unit that other Google
// services give to such a limit.
func UnitsError(perUser bool, limit int64, window time.Time) *Error {
	name, quotaLimit, unit := "Units per minute per user", "totalQueryCostPerMinutePerUser", "1/min/{project}/{user}"
	if !perUser {
		name, quotaLimit, unit = "Units per minute", "totalQueryCostPerMinutePerProject", "1/min/{project}"
	}
	e := QuotaError("metric 'Total Query Cost'", name, gmailService)
	metadata := map[string]string{
		"quota_limit_value": strconv.FormatInt(limit, 10),
		"quota_limit":       quotaLimit,
		"consumer":          "projects/" + ProjectNumber,
		"quota_metric":      "gmail.googleapis.com/total_query_cost",
		"quota_location":    "global",
		"service":           "gmail.googleapis.com",
		"quota_unit":        unit,
	}
	if !window.IsZero() {
		metadata["window_start_time"] = strconv.FormatInt(window.Unix(), 10)
	}
	e.Details = []any{
		ErrorInfo{Type: ErrorInfoType, Reason: "RATE_LIMIT_EXCEEDED", Domain: "googleapis.com", Metadata: metadata},
		help{Type: "type.googleapis.com/google.rpc.Help", Links: []helpLink{{
			Description: "Request a higher quota limit.",
			URL:         "https://cloud.google.com/docs/quotas/help/request_increase",
		}}},
	}
	return e
}

// The services, as refusals name them.
const (
	gmailService    = "gmail.googleapis.com"
	CalendarService = "calendar-json.googleapis.com"
)

// QuotaError names the limit that was exceeded: of a quota metric, or in older answers
// of a quota group.
func QuotaError(of, limit, service string) *Error {
	return NewError(http.StatusForbidden, "usageLimits", "rateLimitExceeded", fmt.Sprintf(
		"Quota exceeded for quota %s and limit '%s' of service '%s' for consumer 'project_number:%s'.",
		of, limit, service, ProjectNumber))
}

// TooManyConcurrent is the refusal of one call more than may be in flight.
func TooManyConcurrent() *Error {
	return NewError(http.StatusTooManyRequests, "global", "rateLimitExceeded", "Too many concurrent requests for user.")
}
