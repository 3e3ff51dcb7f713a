package fakegoogle

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"headroom/internal/lab/fakegoogle/calendar"
	"headroom/internal/lab/fakegoogle/wire"
)

// postCalendar does one change or a list of them, up to the first that fails.
func (s *Server) postCalendar(w http.ResponseWriter, r *http.Request) {
	var list []calendar.Change
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestControl))
	if err == nil && strings.HasPrefix(strings.TrimSpace(string(body)), "[") {
		err = wire.DecodeStrict(body, &list)
	} else if err == nil {
		list = make([]calendar.Change, 1)
		err = wire.DecodeStrict(body, &list[0])
	}
	done := calendar.Changed{Events: []calendar.Event{}}
	for i, change := range list {
		if err != nil {
			break
		}
		var e *calendar.Event
		if e, err = s.ChangeCalendar(change); err != nil {
			err = fmt.Errorf("change %d: %w", i+1, err)
		} else if e != nil {
			done.Events = append(done.Events, *e)
		}
	}
	status := http.StatusBadRequest
	if errors.Is(err, calendar.ErrNoEvent) || errors.Is(err, errNoCalendar) {
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
func (s *Server) ChangeCalendar(change calendar.Change) (*calendar.Event, error) {
	if change.Account == "" {
		if box := s.firstMailbox(); box != nil {
			change.Account = box.Email()
		}
	}
	id := change.Calendar
	if id == "" {
		id = "primary"
	}
	if change.Op == "add-calendar" {
		_, err := s.AddCalendar(change.Account, calendar.Info{ID: change.Calendar, Summary: change.Summary, TimeZone: change.TimeZone})
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
	return c.Apply(change)
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
	s.account(box) // makes the primary calendar, if it was not used yet
	answer := calendar.AccountState{Account: box.Email(), Calendars: []calendar.State{}}
	for _, c := range s.Calendars(box.Email()) {
		if only := q.Get("calendar"); only == "" || c.IsNamed(only) {
			answer.Calendars = append(answer.Calendars, c.State())
		}
	}
	sendJSON(w, http.StatusOK, answer)
}

// postNotifications changes how channels notify.
func (s *Server) postNotifications(w http.ResponseWriter, r *http.Request) {
	var change struct {
		calendar.NotifyProfile
		CloseChannels bool `json:"close_channels"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestControl))
	if err == nil {
		err = wire.DecodeStrict(body, &change)
	}
	if err == nil {
		err = s.SetNotifyProfile(change.NotifyProfile)
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
