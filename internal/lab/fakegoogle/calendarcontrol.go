package fakegoogle

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// postCalendar does one change or a list of them, up to the first that fails.
func (s *Server) postCalendar(w http.ResponseWriter, r *http.Request) {
	var list []CalendarChange
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestControl))
	if err == nil && strings.HasPrefix(strings.TrimSpace(string(body)), "[") {
		err = decodeStrict(body, &list)
	} else if err == nil {
		list = make([]CalendarChange, 1)
		err = decodeStrict(body, &list[0])
	}
	done := CalendarChanged{Events: []Event{}}
	for i, change := range list {
		if err != nil {
			break
		}
		var e *Event
		if e, err = s.ChangeCalendar(change); err != nil {
			err = fmt.Errorf("change %d: %w", i+1, err)
		} else if e != nil {
			done.Events = append(done.Events, *e)
		}
	}
	status := http.StatusBadRequest
	if errors.Is(err, ErrNoEvent) || errors.Is(err, errNoCalendar) {
		status = http.StatusNotFound
	}
	if err != nil {
		sendJSON(w, status, controlError{err.Error()})
		return
	}
	sendJSON(w, http.StatusOK, done)
}

var errNoCalendar = errors.New("no such calendar")

// ChangeCalendar does what POST /_fake/calendar asks for. It returns the event
// that came of it, if one did.
func (s *Server) ChangeCalendar(change CalendarChange) (*Event, error) {
	if change.Account == "" {
		if box := s.firstMailbox(); box != nil {
			change.Account = box.email
		}
	}
	id := change.Calendar
	if id == "" {
		id = "primary"
	}
	if change.Op == "add-calendar" {
		_, err := s.AddCalendar(change.Account, CalendarInfo{ID: change.Calendar, Summary: change.Summary, TimeZone: change.TimeZone})
		return nil, err
	}
	c := s.Calendar(change.Account, id)
	if c == nil {
		return nil, fmt.Errorf("calendar %q of %q: %w", id, change.Account, errNoCalendar)
	}
	if change.Op == "expire-list-token" {
		s.ExpireListTokens(change.Account, change.Always)
		return nil, nil
	}
	return c.apply(change)
}

// getCalendar dumps the calendars of an account, or the one that is asked for.
func (s *Server) getCalendar(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	for name := range q {
		if !slices.Contains([]string{"account", "calendar"}, name) {
			sendJSON(w, http.StatusBadRequest, controlError{fmt.Sprintf("unknown parameter %q: choose by account and calendar", name)})
			return
		}
	}
	box, ok := s.controlMailbox(w, q.Get("account"))
	if !ok {
		return
	}
	s.diary(box) // there is a primary calendar, even if nobody asked for it yet
	answer := AccountCalendars{Account: box.email, Calendars: []CalendarState{}}
	for _, c := range s.Calendars(box.email) {
		if only := q.Get("calendar"); only == "" || only == c.id || only == "primary" && c.primary {
			answer.Calendars = append(answer.Calendars, c.State())
		}
	}
	sendJSON(w, http.StatusOK, answer)
}

// postNotifications changes how channels tell of what happens.
func (s *Server) postNotifications(w http.ResponseWriter, r *http.Request) {
	var change struct {
		NotifyHabits
		CloseChannels bool `json:"close_channels"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestControl))
	if err == nil {
		err = decodeStrict(body, &change)
	}
	if err == nil {
		err = s.SetNotifyHabits(change.NotifyHabits)
	}
	if err != nil {
		sendJSON(w, http.StatusBadRequest, controlError{err.Error()})
		return
	}
	if change.CloseChannels {
		s.CloseChannels()
	}
	sendJSON(w, http.StatusOK, s.Notifications())
}
