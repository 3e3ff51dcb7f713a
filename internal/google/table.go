package google

import (
	"net/http"
	"slices"
	"strings"

	"headroom/jobs"
)

// A call is the kind of a request to Google, as far as it decides what an error means.
type call string

const (
	callProfile  call = "getProfile"
	callList     call = "messages.list"
	callNextPage call = "messages.list, next page"  // with a page token
	callLabelled call = "messages.list, of a label" // without a page token
	callGet      call = "messages.get"
	callThread   call = "threads.get"
	callHistory  call = "history.list"
	callLabels   call = "labels.list"
	callLabel    call = "labels.get"

	callAttachment  call = "messages.attachments.get"
	callHistoryPage call = "history.list, next page" // with a page token
)

// method is the call's API method, for metrics.
func (c call) method() string {
	method, _, _ := strings.Cut(string(c), ",")
	return method
}

// A rule maps one kind of answer to its meaning. Empty fields match anything.
type rule struct {
	status  int
	reasons []string // of errors[] or of an ErrorInfo in details[]
	message string   // a part of the message
	calls   []call
	class   jobs.Class
	hint    string // what an operator can do about it
}

// Scope is the OAuth scope that the service account needs, in Google's words.
const Scope = "https://www.googleapis.com/auth/gmail.readonly"

const hintDelegation = "in the Workspace admin console, under domain-wide delegation, grant the service account's client id the scope " + Scope

// rules is the table of what an error in Google's envelope means for the work, if it
// is not about quota. The first rule that matches decides. An error that matches none
// may pass; see [classOf]. Answers without an envelope come from something in front of
// Google, and decide nothing.
var rules = []rule{
	{status: 400, reasons: []string{"failedPrecondition"}, message: "Mail service not enabled", class: jobs.ClassAccount,
		hint: "the user has no mailbox: switch Gmail on for the user, or remove the account"},
	// Seen for service accounts without a subject, and as a transient fault.
	{status: 400, reasons: []string{"failedPrecondition"}, class: jobs.ClassTransient,
		hint: "if that goes on, check that the user has a mailbox and that the service account may act for the user"},
	{status: 400, calls: []call{callNextPage, callHistoryPage}, class: jobs.ClassCursor},
	{status: 400, calls: []call{callGet, callThread}, class: jobs.ClassItem},
	{status: 400, calls: []call{callList, callLabelled}, class: jobs.ClassSearch,
		hint: "check the filter's labels, which are Gmail's label ids, and its query"},

	{status: 401, class: jobs.ClassAccount,
		hint: "a fresh token was refused as well: check that the user is not suspended; " + hintDelegation},

	{status: 403, reasons: []string{"accessNotConfigured", "SERVICE_DISABLED"}, class: jobs.ClassProject,
		hint: "enable the Gmail API for the Google Cloud project, at the address that the message names"},
	{status: 403, reasons: []string{"insufficientPermissions", "ACCESS_TOKEN_SCOPE_INSUFFICIENT"}, class: jobs.ClassAccount,
		hint: hintDelegation},
	{status: 403, reasons: []string{"domainPolicy"}, class: jobs.ClassAccount,
		hint: "the domain's administrators must allow the Gmail API for this user"},
	{status: 403, reasons: []string{"forbidden"}, class: jobs.ClassAccount,
		hint: "the token is not for this mailbox: check the account's address; " + hintDelegation},

	// The id of an attachment is valid for a while only; the message, if it exists,
	// has another one later. So an error about an attachment is not about its message.
	{status: 404, calls: []call{callGet, callThread}, class: jobs.ClassGone},
	{status: 404, calls: []call{callLabel, callLabelled}, class: jobs.ClassSearch,
		hint: "no such label: Gmail's labels are named by their ids, such as INBOX or Label_12"},
	{status: 404, calls: []call{callHistory, callHistoryPage, callNextPage}, class: jobs.ClassCursor},
	{status: 404, calls: []call{callProfile, callList, callLabels}, class: jobs.ClassAccount,
		hint: "Google knows no such mailbox: check the account's address"},

	{status: 410, calls: []call{callGet, callThread}, class: jobs.ClassGone},
	{status: 410, calls: []call{callHistory, callHistoryPage, callNextPage}, class: jobs.ClassCursor},

	// A refusal for quota of a kind that was not recognised.
	{status: http.StatusTooManyRequests, class: jobs.ClassQuota},
}

// classOf returns the class of an answer. Everything that the table does not name may
// pass: server faults, timeouts, conflicts, and refusals of an unknown kind, which never
// end a job.
func classOf(c call, status int, reasons []string, message string) (jobs.Class, string) {
	for _, r := range rulesOf(c) {
		if r.fits(c, status, reasons, message) {
			return r.class, r.hint
		}
	}
	return jobs.ClassTransient, ""
}

func (r rule) fits(c call, status int, reasons []string, message string) bool {
	return r.status == status &&
		(r.calls == nil || slices.Contains(r.calls, c)) &&
		(r.reasons == nil || slices.ContainsFunc(reasons, func(s string) bool { return slices.Contains(r.reasons, s) })) &&
		strings.Contains(message, r.message)
}
