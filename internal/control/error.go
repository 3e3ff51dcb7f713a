package control

import (
	"context"
	"errors"
	"fmt"

	"headroom/config"
	"headroom/jobs"
	"headroom/quota"
)

// A Kind sorts errors by who can act on them. Exit codes and HTTP statuses follow from
// it.
type Kind int

// The kinds of errors.
const (
	Unexpected  Kind = iota // a fault of the machine or of Headroom
	NotFound                // the store holds nothing of that name
	Unknown                 // neither the settings nor Headroom know that name
	Refused                 // the request makes no sense, and nothing was written
	Conflict                // the state of things does not allow it now
	Unavailable             // Redis does not answer, or quota did not come in time
	Settings                // the settings are wrong
	Google                  // Google refused or failed
	Timeout                 // it took too long
)

// An Error is one that an operator can do something about. It also matches
// [jobs.ErrNotFound] if its kind is NotFound.
type Error struct {
	Kind Kind
	Err  error
	Hint string // the next step; "": Err contains it
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Err.Error()
	}
	return e.Err.Error() + "; " + e.Hint
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Is implements errors.Is.
func (e *Error) Is(target error) bool { return e.Kind == NotFound && target == jobs.ErrNotFound }

// Errorf makes an [*Error] without a hint of its own.
func Errorf(kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// KindOf is the kind of an error of this package, or of one that it passes on.
func KindOf(err error) Kind {
	own, isOwn := errors.AsType[*Error](err)
	_, denied := errors.AsType[*quota.DeniedError](err)
	_, settings := errors.AsType[*config.InvalidError](err)
	_, google := errors.AsType[*jobs.CallError](err)
	_, state := errors.AsType[*jobs.StateError](err)
	switch {
	case settings:
		return Settings
	case denied, errors.Is(err, quota.ErrUnavailable):
		return Unavailable
	case google:
		return Google
	case isOwn:
		return own.Kind
	case errors.Is(err, jobs.ErrNotFound):
		return NotFound
	case errors.Is(err, jobs.ErrExists), state:
		return Conflict
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	}
	return Unexpected
}

// missing is an error of kind [NotFound].
func missing(hint, format string, args ...any) error {
	return &Error{Kind: NotFound, Err: fmt.Errorf(format, args...), Hint: hint}
}

// refusef is an error of kind [Refused].
func refusef(format string, args ...any) error { return Errorf(Refused, format, args...) }
