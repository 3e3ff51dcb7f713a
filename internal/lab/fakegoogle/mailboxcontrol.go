package fakegoogle

import (
	"io"
	"net/http"

	"headroom/internal/lab/fakegoogle/gmail"
	"headroom/internal/lab/fakegoogle/wire"
)

// postMailbox changes a mailbox, or refuses the whole change.
func (s *Server) postMailbox(w http.ResponseWriter, r *http.Request) {
	var change gmail.MailboxChange
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestControl))
	if err == nil {
		err = wire.DecodeStrict(body, &change)
	}
	if err == nil {
		err = change.Validate()
	}
	if err != nil {
		sendJSON(w, http.StatusBadRequest, controlError{err.Error()})
		return
	}
	box, ok := s.controlMailbox(w, change.User)
	if !ok {
		return
	}
	if change.Profile != nil {
		if err := box.SetProfile(*change.Profile); err != nil {
			sendJSON(w, http.StatusBadRequest, controlError{err.Error()})
			return
		}
	}
	for _, alias := range change.Alias {
		if err := s.AddAlias(box.Email(), alias); err != nil {
			sendJSON(w, http.StatusBadRequest, controlError{err.Error()})
			return
		}
	}
	done := box.Change(change)
	if change.RevokeAccessToken {
		s.tokens.revoke(wire.AddressKey(box.Email()))
	}
	sendJSON(w, http.StatusOK, done)
}
