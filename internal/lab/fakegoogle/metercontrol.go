package fakegoogle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"headroom/internal/lab/fakegoogle/meter"
	"headroom/internal/lab/fakegoogle/wire"
)

// Meter returns the account of everything that has arrived so far.
func (s *Server) Meter() meter.Report {
	r := meter.Report{
		Prices: s.opts.Prices, Meter: s.opts.Meter, Scale: s.opts.Scale,
		WindowSeconds:   s.meter.Set.Window.Seconds(),
		TokenCalls:      s.tokens.callsByUser(),
		Unauthenticated: s.unauthenticated.Load(),
		Unrouted:        s.unrouted.Load(),
		Faulted:         s.faults.Applied(),
		Calendar:        s.CalendarMeter(),
	}
	r.Users, r.Projects = s.meter.Reports()
	return r
}

// CalendarMeter returns the account of every call of Calendar so far. It is part
// of [Server.Meter] too.
func (s *Server) CalendarMeter() meter.CalendarReport { return s.calendarMeter.CalendarReport() }

// Limits returns the limits in force.
func (s *Server) Limits() meter.Limits { return s.meter.Limits() }

// SetLimits changes limits from the next arrival on; those that are zero stay.
// What was spent before counts against the new limits too, and the exact log
// holds each arrival to the limit in force at its moment. It returns the limits
// then in force.
func (s *Server) SetLimits(l meter.Limits) (meter.Limits, error) {
	if l.User < 0 || l.Project < 0 || l.InFlight < 0 || l.BytesPerDay < 0 {
		return s.Limits(), errors.New("limits may not be negative")
	}
	return s.meter.SetLimits(l), nil
}

// CalendarLimits returns the limits of Calendar that are in force.
func (s *Server) CalendarLimits() meter.Limits {
	l := s.calendarMeter.Limits()
	l.BytesPerDay = 0 // Calendar counts none
	return l
}

// SetCalendarLimits is [Server.SetLimits] for Calendar, which counts requests and
// no bytes.
func (s *Server) SetCalendarLimits(l meter.Limits) (meter.Limits, error) {
	if l.User < 0 || l.Project < 0 || l.InFlight < 0 || l.BytesPerDay != 0 {
		return s.CalendarLimits(), errors.New("limits of Calendar may not be negative, and are none of bytes")
	}
	s.calendarMeter.SetLimits(l)
	return s.CalendarLimits(), nil
}

// metered returns the meter whose arrivals a filter chooses among.
func (s *Server) metered(f meter.Filter) *meter.Meter {
	if f.Calendar {
		return s.calendarMeter
	}
	return s.meter
}

// Select yields every call that a filter chooses and that reached the meter before
// the iteration began, oldest first. It is safe to use while the server serves.
func (s *Server) Select(f meter.Filter) iter.Seq[meter.Arrival] { return s.metered(f).Select(f) }

// Activity sums up the arrivals that a filter chooses, for instance those of one
// user since a moment.
func (s *Server) Activity(f meter.Filter) meter.Activity { return s.metered(f).Activity(f) }

// filterOf reads the filter of a control's query.
func filterOf(q url.Values) (meter.Filter, error) {
	for key := range q {
		if !slices.Contains([]string{"project", "user", "method", "since", "api"}, key) {
			return meter.Filter{}, fmt.Errorf("unknown parameter %q: choose by api, project, user, method and since", key)
		}
	}
	f := meter.Filter{Project: q.Get("project"), User: q.Get("user"), Method: q.Get("method")}
	calendar, err := isCalendarAPI(q)
	if err != nil {
		return meter.Filter{}, err
	}
	f.Calendar = calendar
	since := q.Get("since")
	if since == "" {
		return f, nil
	}
	if ago, err := time.ParseDuration(since); err == nil {
		f.Since = time.Now().Add(-ago)
		return f, nil
	}
	if f.Since, err = time.Parse(time.RFC3339Nano, since); err != nil {
		return meter.Filter{}, fmt.Errorf("since %q is neither a moment like 2026-11-29T20:00:00Z nor a duration like 30s", since)
	}
	return f, nil
}

// isCalendarAPI reads the parameter api of a control: calendar, or gmail, which is
// meant without it.
func isCalendarAPI(q url.Values) (bool, error) {
	switch api := q.Get("api"); api {
	case "", "gmail":
		return false, nil
	case "calendar":
		return true, nil
	default:
		return false, fmt.Errorf("api %q is neither gmail nor calendar", api)
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

func (s *Server) setLimits(r *http.Request, l meter.Limits) (meter.Limits, error) {
	calendar, err := isCalendarAPI(r.URL.Query())
	switch {
	case err != nil:
		return meter.Limits{}, err
	case calendar:
		return s.SetCalendarLimits(l)
	}
	return s.SetLimits(l)
}

// postLimits changes the limits that the body names.
func (s *Server) postLimits(w http.ResponseWriter, r *http.Request) {
	var change, inForce meter.Limits
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestControl))
	if err == nil {
		err = wire.DecodeStrict(body, &change)
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
