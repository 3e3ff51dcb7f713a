package fakegoogle

import (
	"fmt"
	"net/http"
	"strings"

	"headroom/internal/lab/fakegoogle/gmail"
)

const controlPrefix = "/_fake/"

func isControl(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, controlPrefix) }

// largestControl bounds the body of a control request, in bytes: a message of
// 35 MB as base64 fits.
const largestControl = 64 << 20

type controlError struct {
	Error string `json:"error"`
}

// serveControl serves what Google has not. Nothing here is metered.
func (s *Server) serveControl(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + strings.TrimPrefix(r.URL.Path, controlPrefix) {
	case "GET meter":
		sendJSON(w, http.StatusOK, s.Meter())
	case "GET arrivals", "GET activity":
		s.sendArrivals(w, r)
	case "GET limits":
		s.getLimits(w, r)
	case "POST limits":
		s.postLimits(w, r)
	case "GET faults":
		sendJSON(w, http.StatusOK, s.Faults())
	case "POST faults":
		s.postFaults(w, r)
	case "DELETE faults":
		s.ClearFaults()
		w.WriteHeader(http.StatusNoContent)
	case "GET mailbox":
		box, ok := s.controlMailbox(w, r.URL.Query().Get("user"))
		if ok {
			sendJSON(w, http.StatusOK, box.State())
		}
	case "POST mailbox":
		s.postMailbox(w, r)
	case "GET calendar":
		s.getCalendar(w, r)
	case "POST calendar":
		s.postCalendar(w, r)
	case "GET notifications":
		sendJSON(w, http.StatusOK, s.Notifications())
	case "POST notifications":
		s.postNotifications(w, r)
	case "GET push":
		sendJSON(w, http.StatusOK, s.pushState())
	case "POST push":
		s.postPush(w, r)
	default:
		sendJSON(w, http.StatusNotFound, controlError{
			"no such control: GET meter, GET arrivals, GET activity, GET and POST limits, GET, POST and DELETE faults, GET and POST mailbox, calendar and notifications, GET and POST push are under /_fake/"})
	}
}

// controlMailbox finds a mailbox, or answers 404.
func (s *Server) controlMailbox(w http.ResponseWriter, user string) (*gmail.Mailbox, bool) {
	box := s.Mailbox(user)
	if user == "" {
		box = s.firstMailbox()
	}
	if box == nil {
		sendJSON(w, http.StatusNotFound, controlError{fmt.Sprintf("no mailbox of %q: give it to the fake when it starts", user)})
		return nil, false
	}
	return box, true
}
