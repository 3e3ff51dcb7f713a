// Package gmail is the fake's Gmail: mailboxes with messages, labels, threads and
// history, the methods of the API on them, and what their watches publish. Who
// calls, what it costs and what goes wrong is decided before it is asked.
package gmail
