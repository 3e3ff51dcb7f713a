package fakegoogle

import (
	"io"
	"net/http"
)

// A PushState answers GET and POST /_fake/push.
type PushState struct {
	Push    Push         `json:"push"`
	Counts  PushCounts   `json:"counts"`
	Watches []WatchState `json:"watches"` // those that last
}

// A PushChange is the body of POST /_fake/push.
type PushChange struct {
	Push *Push `json:"push,omitempty"`
	// ExpireWatches are the users whose watch ends now.
	ExpireWatches []string `json:"expire_watches,omitempty"`
}

func (s *Server) pushState() PushState {
	state := PushState{Push: s.publisher.settings(), Counts: s.Pushed(), Watches: []WatchState{}}
	s.mu.RLock()
	boxes := s.inOrder
	s.mu.RUnlock()
	for _, box := range boxes {
		if w, ok := box.Watch(); ok {
			state.Watches = append(state.Watches, w)
		}
	}
	return state
}

// postPush changes where notices go, or ends watches.
func (s *Server) postPush(w http.ResponseWriter, r *http.Request) {
	var change PushChange
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestControl))
	if err == nil {
		err = decodeStrict(body, &change)
	}
	if err == nil && change.Push != nil {
		err = s.SetPush(*change.Push)
	}
	if err != nil {
		sendJSON(w, http.StatusBadRequest, controlError{err.Error()})
		return
	}
	for _, user := range change.ExpireWatches {
		if box := s.Mailbox(user); box != nil {
			box.ExpireWatch()
		}
	}
	sendJSON(w, http.StatusOK, s.pushState())
}
