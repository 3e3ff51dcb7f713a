package fakegoogle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const controlPrefix = "/_fake/"

func isControl(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, controlPrefix) }

// largestControl bounds the body of a control request, in bytes: a message of
// 35 MB as base64 fits.
const largestControl = 64 << 20

// A MailboxState answers GET /_fake/mailbox.
type MailboxState struct {
	User      string        `json:"user"`
	HistoryID uint64        `json:"history_id"`
	Messages  []MessageInfo `json:"messages"` // newest first, spam and trash too
}

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
			sendJSON(w, http.StatusOK, MailboxState{User: box.email, HistoryID: box.HistoryID(), Messages: box.Messages()})
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

// sendArrivals sums up the chosen part of the exact log, or streams it, a JSON
// object a line.
func (s *Server) sendArrivals(w http.ResponseWriter, r *http.Request) {
	f, err := filterOf(r.URL.Query())
	if err != nil {
		sendJSON(w, http.StatusBadRequest, controlError{err.Error()})
		return
	}
	if strings.HasSuffix(r.URL.Path, "activity") {
		sendJSON(w, http.StatusOK, s.Activity(f))
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	encoder := json.NewEncoder(w)
	for a := range s.Select(f) {
		if encoder.Encode(a) != nil {
			return // the reader has gone
		}
	}
}

// getLimits answers with the limits of Gmail, or with api=calendar of Calendar.
func (s *Server) getLimits(w http.ResponseWriter, r *http.Request) {
	calendar, err := isCalendarAPI(r.URL.Query())
	switch {
	case err != nil:
		sendJSON(w, http.StatusBadRequest, controlError{err.Error()})
	case calendar:
		sendJSON(w, http.StatusOK, s.CalendarLimits())
	default:
		sendJSON(w, http.StatusOK, s.Limits())
	}
}

func (s *Server) setLimits(r *http.Request, l Limits) (Limits, error) {
	calendar, err := isCalendarAPI(r.URL.Query())
	switch {
	case err != nil:
		return Limits{}, err
	case calendar:
		return s.SetCalendarLimits(l)
	}
	return s.SetLimits(l)
}

// postLimits changes the limits that the body names.
func (s *Server) postLimits(w http.ResponseWriter, r *http.Request) {
	var change, inForce Limits
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestControl))
	if err == nil {
		err = decodeStrict(body, &change)
	}
	if err == nil {
		inForce, err = s.setLimits(r, change)
	}
	if err != nil {
		sendJSON(w, http.StatusBadRequest, controlError{err.Error()})
		return
	}
	sendJSON(w, http.StatusOK, inForce)
}

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

// controlMailbox finds a mailbox, or answers 404.
func (s *Server) controlMailbox(w http.ResponseWriter, user string) (*Mailbox, bool) {
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

// decodeStrict refuses keys that v has not and anything after the value.
func decodeStrict(body []byte, v any) error {
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		return fmt.Errorf("read the JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("read the JSON: something follows the first value")
	}
	return nil
}
