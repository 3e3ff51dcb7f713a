// Package term is how commands write for people: tables, moments, and text of
// strangers, which must not move anything on a terminal. It knows no command and no
// job.
//
// All that a command prints for people goes through [Clean] or [Output], which
// calls the same function.
package term
