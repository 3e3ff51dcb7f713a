package fakegoogle

import (
	"io"
	"net/http"
	"time"

	"headroom/internal/lab/fakegoogle/gmail"
	"headroom/internal/lab/fakegoogle/wire"
)

// A PushState answers GET and POST /_fake/push.
type PushState struct {
	Push    gmail.Push         `json:"push"`
	Counts  gmail.PushCounts   `json:"counts"`
	Watches []gmail.WatchState `json:"watches"` // those that last
}

// A PushChange is the body of POST /_fake/push.
type PushChange struct {
	Push *gmail.Push `json:"push,omitempty"`
	// ExpireWatches are the users whose watch ends now.
	ExpireWatches []string `json:"expire_watches,omitempty"`
}

func (s *Server) pushState() PushState {
	state := PushState{Push: s.publisher.Settings(), Counts: s.Pushed(), Watches: []gmail.WatchState{}}
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
		err = wire.DecodeStrict(body, &change)
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

// SetPush sets where notices go from now on.
func (s *Server) SetPush(p gmail.Push) error { return s.publisher.Set(p) }

// Pushed counts the notices so far.
func (s *Server) Pushed() gmail.PushCounts { return s.publisher.Pushed() }

// Claims are those of the token that comes with a push.
func (s *Server) Claims(p gmail.Push, at time.Time) map[string]any {
	return map[string]any{
		"iss": s.url(), "aud": p.Audience, "azp": "112233445566778899000", "sub": "112233445566778899000",
		"email": p.ServiceAccount, "email_verified": true,
		"iat": at.Unix(), "exp": at.Add(time.Hour).Unix(),
	}
}

// pushToken signs the token of a push.
func (s *Server) pushToken(p gmail.Push) (string, error) {
	return s.SignIDToken(s.Claims(p, time.Now()))
}
