package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"go.uber.org/zap"
)

// readiness is the answer of /readyz.
type readiness struct {
	Ready  bool              `json:"ready"`
	Checks map[string]string `json:"checks"` // "ok", or what is wrong
}

// ready answers 200 when all checks pass and 503 otherwise, with each check's
// result in the body.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	answer := s.check(r.Context())
	w.Header().Set("Content-Type", "application/json")
	if !answer.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		s.opts.Log.Debug("answer to a readiness probe not sent", zap.Error(err))
	}
}

// check runs all checks concurrently. A check that does not end in time has failed.
func (s *Server) check(ctx context.Context) readiness {
	errs := make([]error, len(s.opts.Checks))
	var wg sync.WaitGroup
	for i, c := range s.opts.Checks {
		wg.Go(func() {
			_, errs[i] = within(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, c.Func(ctx) })
		})
	}
	wg.Wait()
	answer := readiness{Ready: true, Checks: map[string]string{}}
	for i, c := range s.opts.Checks {
		answer.Checks[c.Name] = "ok"
		if err := errs[i]; err != nil {
			answer.Ready = false
			answer.Checks[c.Name] = err.Error()
			if errors.Is(err, context.DeadlineExceeded) {
				answer.Checks[c.Name] = fmt.Sprintf("no answer within %s", sourceTimeout)
			}
		}
	}
	return answer
}
