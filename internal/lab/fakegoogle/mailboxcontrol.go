package fakegoogle

import (
	"io"
	"net/http"
)

// postMailbox changes a mailbox, or refuses the whole change.
func (s *Server) postMailbox(w http.ResponseWriter, r *http.Request) {
	var change MailboxChange
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestControl))
	if err == nil {
		err = decodeStrict(body, &change)
	}
	if err == nil {
		err = change.validate()
	}
	if err != nil {
		sendJSON(w, http.StatusBadRequest, controlError{err.Error()})
		return
	}
	box, ok := s.controlMailbox(w, change.User)
	if !ok {
		return
	}
	if change.Habits != nil {
		if err := box.SetHabits(*change.Habits); err != nil {
			sendJSON(w, http.StatusBadRequest, controlError{err.Error()})
			return
		}
	}
	for _, alias := range change.Alias {
		if err := s.AddAlias(box.email, alias); err != nil {
			sendJSON(w, http.StatusBadRequest, controlError{err.Error()})
			return
		}
	}
	done := box.change(change)
	if change.RevokeAccessToken {
		s.tokens.revoke(mailboxKey(box.email))
	}
	sendJSON(w, http.StatusOK, done)
}
