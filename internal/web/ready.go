package web

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// checkTimeout bounds each check of readiness.
const checkTimeout = 2 * time.Second

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

// check runs all checks side by side.
func (s *Server) check(ctx context.Context) readiness {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	type result struct {
		name string
		err  error
	}
	results := make(chan result, len(s.opts.Checks))
	for _, c := range s.opts.Checks {
		go func() { results <- result{c.Name, c.Func(ctx)} }()
	}
	answer := readiness{Ready: true, Checks: map[string]string{}}
	for range s.opts.Checks {
		r := <-results
		answer.Checks[r.name] = "ok"
		if r.err != nil {
			answer.Ready = false
			answer.Checks[r.name] = r.err.Error()
		}
	}
	return answer
}
