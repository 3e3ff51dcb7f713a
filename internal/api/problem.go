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

	"headroom/internal/control"
	"headroom/jobs"
)

// problem is the answer to a request that could not be served. The text of an error
// that nobody expected stays in the log.
func (a *API) problem(ctx context.Context, err error, within time.Duration) error {
	status := status(err)
	switch {
	case status == http.StatusGatewayTimeout:
		return huma.NewError(status, fmt.Sprintf("no answer within %s; ask again, or for less at once", within))
	case errors.Is(err, jobs.ErrDamaged): // an operator has to act, and the text contains the command
		a.log.Error("a stored body is damaged", zap.Error(err))
		return huma.NewError(status, err.Error())
	case status != http.StatusInternalServerError:
		return huma.NewError(status, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if ctx.Err() == nil { // else nobody waits for the answer any more
		a.log.Error("operation failed", zap.Error(err))
	}
	return huma.NewError(status, "something unexpected went wrong; the log of the server says what")
}

// statusOf shows what kind of error it is.
var statusOf = map[control.Kind]int{
	control.Unexpected:  http.StatusInternalServerError,
	control.NotFound:    http.StatusNotFound,
	control.Unknown:     http.StatusNotFound,
	control.Refused:     http.StatusUnprocessableEntity,
	control.Conflict:    http.StatusConflict,
	control.Unavailable: http.StatusServiceUnavailable,
	control.Settings:    http.StatusServiceUnavailable,
	control.Google:      http.StatusBadGateway,
	control.Timeout:     http.StatusGatewayTimeout,
}

func status(err error) int {
	if _, ok := errors.AsType[cursorError](err); ok {
		return http.StatusBadRequest
	}
	return statusOf[control.KindOf(err)]
}

// invalid is the error of a request that makes no sense.
func invalid(err error) error { return &control.Error{Kind: control.Refused, Err: err} }

// explainInvalid names in the detail of a problem the part of the request that is wrong.
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
