// Package google reads Gmail and Calendar as Google's official client would, but
// decodes what it reads leniently, item by item (answer.go). It knows what
// every answer means for an account, a stream or an item ([Google.Mailbox]
// lists the errors), whose token a call carries, and how much memory message
// bodies may take. It does not decide what is fetched, or when a call that
// failed is tried again.
//
// A call goes through these transports, so that none can be made that was not
// charged:
//
//	request ─► token ─► quota.Transport ─► body budget ─► net/http
//	             │          charges every attempt
//	             └─ on a 401: a new token and one more attempt
//
// Tokens themselves are fetched past all of that: they cost no quota.
package google
