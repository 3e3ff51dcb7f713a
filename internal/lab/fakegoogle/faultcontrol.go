package fakegoogle

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// AddFault puts a fault in force, after those that are. It returns an error that
// names what is wrong with it.
func (s *Server) AddFault(f Fault) error { return s.faults.add(f) }

// ClearFaults ends all faults. Calls that one is holding stay held.
func (s *Server) ClearFaults() { s.faults.clear() }

// Faults returns the faults in force.
func (s *Server) Faults() []FaultState { return s.faults.all() }

// postFaults takes one fault or a list of them, all or none.
func (s *Server) postFaults(w http.ResponseWriter, r *http.Request) {
	var list []Fault
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestControl))
	if err == nil && strings.HasPrefix(strings.TrimSpace(string(body)), "[") {
		err = decodeStrict(body, &list)
	} else if err == nil {
		list = make([]Fault, 1)
		err = decodeStrict(body, &list[0])
	}
	for i, f := range list {
		if problem := f.validate(); err == nil && problem != nil {
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
