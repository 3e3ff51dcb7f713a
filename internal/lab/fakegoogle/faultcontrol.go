package fakegoogle

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/lab/fakegoogle/wire"
)

// AddFault puts a fault in force, after those that are. It returns an error that
// names what is wrong with it.
func (s *Server) AddFault(f fault.Fault) error { return s.faults.Add(f) }

// ClearFaults ends all faults. Calls that one is holding stay held.
func (s *Server) ClearFaults() { s.faults.Clear() }

// Faults returns the faults in force.
func (s *Server) Faults() []fault.State { return s.faults.All() }

// postFaults takes one fault or a list of them, all or none.
func (s *Server) postFaults(w http.ResponseWriter, r *http.Request) {
	var list []fault.Fault
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestControl))
	if err == nil && strings.HasPrefix(strings.TrimSpace(string(body)), "[") {
		err = wire.DecodeStrict(body, &list)
	} else if err == nil {
		list = make([]fault.Fault, 1)
		err = wire.DecodeStrict(body, &list[0])
	}
	for i, f := range list {
		if problem := f.Validate(); err == nil && problem != nil {
			err = fmt.Errorf("fault %d: %w", i+1, problem)
		}
	}
	if err != nil {
		sendJSON(w, http.StatusBadRequest, controlError{err.Error()})
		return
	}
	for _, f := range list {
		if err := s.AddFault(f); err != nil {
			sendJSON(w, http.StatusBadRequest, controlError{err.Error()})
			return
		}
	}
	sendJSON(w, http.StatusOK, s.Faults())
}
