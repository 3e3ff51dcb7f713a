package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"go.uber.org/zap"

	"headroom/jobs"
)

// problem is the answer to a request that could not be served. The text of an error
// that nobody expected stays in the log.
func (a *API) problem(ctx context.Context, err error, within time.Duration) error {
	status := a.status(err)
	switch {
	case status == http.StatusGatewayTimeout:
		return huma.NewError(status, fmt.Sprintf("no answer within %s; ask again, or for less at once", within))
	case errors.Is(err, jobs.ErrDamaged): // somebody has to act, and the text says how
		a.opts.Log.Error("a stored body is damaged", zap.Error(err))
		return huma.NewError(status, err.Error())
	case status != http.StatusInternalServerError:
		return huma.NewError(status, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if ctx.Err() == nil { // else nobody waits for the answer any more
		a.opts.Log.Error("operation failed", zap.Error(err))
	}
	return huma.NewError(status, "something unexpected went wrong; the log of the server says what")
}

func (a *API) status(err error) int {
	if status := a.opts.Backend.Status(err); status != 0 {
		return status
	}
	_, state := errors.AsType[*jobs.StateError](err)
	_, invalid := errors.AsType[*invalidError](err)
	_, cursor := errors.AsType[cursorError](err)
	switch {
	case errors.Is(err, jobs.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, jobs.ErrExists), state:
		return http.StatusConflict
	case cursor:
		return http.StatusBadRequest
	case invalid:
		return http.StatusUnprocessableEntity
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}

// An invalidError says what is wrong with a request.
type invalidError struct{ error }

// Invalid makes an error that says what is wrong with a request.
func Invalid(err error) error {
	if err == nil {
		return nil
	}
	return &invalidError{err}
}

// explainInvalid says in the detail of a problem which part of a request is wrong.
func explainInvalid(_ huma.Context, _ string, v any) (any, error) {
	if p, ok := v.(*huma.ErrorModel); ok && p.Detail == "validation failed" && len(p.Errors) > 0 {
		first := p.Errors[0]
		p.Detail = fmt.Sprintf("%s: %s; see %s/openapi.json for what is possible", first.Location, first.Message, Path)
	}
	return v, nil
}

// Refuse answers a request that the server keeps from the interface.
func Refuse(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Cache-Control", "no-store")
	refuse(w, status, detail)
}

// refuse answers a request that no operation gets to see.
func refuse(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(&huma.ErrorModel{Status: status, Title: http.StatusText(status), Detail: detail}) // the client has gone
}
