// Package google reads Gmail and Calendar. It sends the requests of Google's official
// client, and decodes the answers leniently, item by item (answer.go). It decides what
// every answer means for an account, a stream or an item ([Google.Mailbox] lists the
// errors), which token a call carries, and how much memory message bodies may take. It
// does not decide what is fetched, or when a failed call is tried again.
//
// Every call goes through these transports, so none can be made without being charged:
//
//	request ─► token ─► quota.Transport ─► body budget ─► net/http
//	             │          charges every attempt
//	             └─ on a 401: a new token and one more attempt
//
// Fetches of tokens bypass these transports: they cost no quota.
package google
