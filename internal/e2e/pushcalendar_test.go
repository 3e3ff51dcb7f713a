package e2e_test

import (
	"cmp"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/calendar"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/internal/store/sqlite"
	"headroom/jobs"
)

const (
	team     = "team@group.calendar.google.com"
	holidays = "en.german#holiday@group.v.calendar.google.com"
)

// pushingCalendars runs a process for the pages, which takes pushes, and one that
// has Google send them there.
func (r *site) pushingCalendars() (web, rest *app.App) {
	r.t.Helper()
	r.cfg.Push.Calendar.Address = "http://127.0.0.1:1/push/calendar" // until it is known
	r.renewals()
	web = r.run(app.RoleWeb)
	r.cfg.Push.Calendar.Address = config.URL("http://" + web.Addr().String() + "/push/calendar")
	return web, r.run(app.RoleScheduler, app.RoleWorker)
}

// renewals has what is due be renewed within a second.
func (r *site) renewals() {
	r.cfg.Schedules["watch-renewal"] = config.Schedule{Spec: "@every 1s", Spread: new(time.Duration(0))}
}

// channels are those that are open for a calendar, or for the list, the oldest first.
func (r *site) channels(calendar string) (open []calendar.ChannelInfo) {
	for _, c := range r.fake.Notifications().Channels {
		if c.Account == ann && c.Calendar == calendar {
			open = append(open, c)
		}
	}
	return open
}

// addedIn adds an event and waits until the store has it. It returns how long after
// that the sync began.
func (r *site) addedIn(s *sqlite.Store, c *calendar.Calendar, id string) time.Duration {
	r.t.Helper()
	added := time.Now()
	r.add(c, calendar.Event{ID: id}, "2026-03-09", "2026-03-10")
	r.until("event "+id+" is there", func() bool { return r.has(s, id) })
	j, err := s.Job(r.t.Context(), jobs.CalendarID(ann))
	if err != nil {
		r.t.Fatal(err)
	}
	return j.StartedAt.Sub(added)
}

func (r *site) has(s *sqlite.Store, event string) bool {
	r.t.Helper()
	page, err := s.Events(r.t.Context(), ann, team, jobs.EventQuery{})
	if err != nil {
		r.t.Fatal(err)
	}
	return slices.ContainsFunc(page, func(e jobs.Event) bool { return e.ID == event })
}

// renewNow has all that Google tells of be renewed.
func (r *site) renewNow(s *sqlite.Store) {
	r.t.Helper()
	if n, err := s.RunSchedule(r.t.Context(), jobs.ScheduleWatches, []string{ann}, time.Now()); err != nil || n != 1 {
		r.t.Fatalf("renew by hand = %d, %v", n, err)
	}
}

// notify sends what a channel would, and returns the answer's status.
func (r *site) notify(to *app.App, id, token, resource string) int {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, "http://"+to.Addr().String()+"/push/calendar", http.NoBody)
	if err != nil {
		r.t.Fatal(err)
	}
	for name, value := range map[string]string{"Channel-ID": id, "Channel-Token": token, "Resource-ID": resource, "Resource-State": "exists", "Message-Number": "999"} {
		req.Header.Set("X-Goog-"+name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	return resp.StatusCode
}

// counted returns the lines of a process' metrics of pushes for calendars.
func (r *site) counted(a *app.App) string {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://"+a.Addr().String()+"/metrics", http.NoBody)
	if err != nil {
		r.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.Join(slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool {
		return !strings.HasPrefix(line, `headroom_push_requests_total`)
	}), "\n")
}

// TestCalendarsAreToldOf: a change is there within seconds, also one that comes
// while a channel takes the place of another, and what is forged is refused.
func TestCalendarsAreToldOf(t *testing.T) {
	t.Parallel()
	r := newCalendarSite(t, fakegoogle.Options{Scale: scale})
	c := r.addCalendar(team, 3)
	r.addCalendar(holidays, 1)
	err := r.fake.AddFault(fault.Fault{Method: "calendar.events.watch", Calendar: holidays, User: ann, Status: 400,
		Body: `{"error":{"code":400,"message":"Push notifications are not supported by this resource.","errors":[{"domain":"calendar","reason":"pushNotSupportedForRequestedResource"}]}}`})
	if err == nil {
		err = r.fake.SetNotifyProfile(calendar.NotifyProfile{Duplicate: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	var hold, held atomic.Bool
	release := make(chan struct{})
	r.gateway(func(req *http.Request) {
		if hold.Load() && strings.HasSuffix(req.URL.Path, "/channels/stop") {
			held.Store(true)
			select {
			case <-release:
			case <-req.Context().Done():
			}
		}
	})
	web, a := r.pushingCalendars()
	s := a.Store()
	r.calendars(s)
	for _, id := range []string{"", ann, team} {
		if open := r.channels(id); len(open) != 1 {
			t.Errorf("after the first sync %d channels are open for %q: %+v", len(open), id, open)
		}
	}
	if w := r.watch(s, jobs.WatchKey{Account: ann, Kind: jobs.WatchCalendar, Calendar: holidays}); w.State != jobs.WatchNone || w.Failures != 0 || time.Until(w.NextTry) < 6*24*time.Hour {
		t.Errorf("watch of what Google does not watch = %+v, want it left alone for a week", w)
	}
	if began := r.addedIn(s, c, "first"); began > 5*time.Second {
		t.Errorf("the sync began %s after the change", began)
	}

	// Renewed: while the stop of the old channel is held, both are open.
	old := cmp.Or(r.channels(team)...)
	hold.Store(true)
	r.renewNow(s)
	r.until("the old channels are to be stopped", held.Load)
	if open := r.channels(team); len(open) != 2 || open[0].ID != old.ID {
		t.Errorf("before the stop: %+v, want the old and the new", open)
	}
	r.add(c, calendar.Event{ID: "between"}, "2026-03-09", "2026-03-10")
	r.until("the old channel told of it too", func() bool { return strings.Contains(r.counted(web), `outcome="replaced",source="calendar"`) })
	close(release)
	r.until("what came between is there", func() bool { return r.has(s, "between") })
	r.until("one channel is open for each", func() bool { return len(r.fake.Notifications().Channels) == 3 })
	if open := r.channels(team); open[0].ID == old.ID {
		t.Error("the new channel was stopped")
	}
	if began := r.addedIn(s, c, "after"); began > 5*time.Second {
		t.Errorf("with the new channel the sync began %s after the change", began)
	}
	r.calendarsEnded(s, 0)
	r.forge(web, s, cmp.Or(r.channels(team)...))
	r.inStep(s, team)
}

// forge sends what Google would not, to a process that has a channel.
func (r *site) forge(web *app.App, s *sqlite.Store, known calendar.ChannelInfo) {
	r.t.Helper()
	if got := r.notify(web, known.ID, jobs.ChannelToken("guess", ann), known.ResourceID); got != http.StatusForbidden {
		r.t.Errorf("a guessed token = %d, want 403", got)
	}
	if got := r.notify(web, "somebody's", "token", "resource"); got != http.StatusNoContent {
		r.t.Errorf("an unknown channel = %d, want 204", got)
	}
	// One that we made, but of which the store knows nothing.
	stray := jobs.ChannelMark + "stray"
	token := jobs.ChannelToken("lost", ann)
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.cfg.Google.Endpoint.Reveal()+"/calendar/v3/calendars/"+team+"/events/watch",
		strings.NewReader(`{"id":"`+stray+`","token":"`+token+`","type":"web_hook","address":"`+r.cfg.Push.Calendar.Address.Reveal()+`"}`))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+ann)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		r.t.Fatalf("open a channel: %+v, %v", resp, err)
	}
	resp.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	r.until("its first message came", func() bool { _, err := s.Channel(r.t.Context(), stray); return err == nil })
	if j, err := s.Job(r.t.Context(), jobs.CalendarID(ann)); err != nil || j.State.Live() {
		r.t.Errorf("a sync began: %+v, %v", j, err)
	}
	r.calendars(s)
	if open := r.channels(team); len(open) != 1 || open[0].ID != known.ID {
		r.t.Errorf("after the next sync: %+v, want the stray stopped", open)
	}
	counted := r.counted(web)
	for _, outcome := range []string{"asked", "forged", "known", "repeated", "replaced", "unknown"} {
		if !strings.Contains(counted, `outcome="`+outcome+`",source="calendar"`) {
			r.t.Errorf("none is counted as %s:\n%s", outcome, counted)
		}
	}
}

// TestChannelsThatLapseAreMadeAgain: Google ends them without a word, and before
// their time as far as the store knows; they come back when they are due.
func TestChannelsThatLapseAreMadeAgain(t *testing.T) {
	t.Parallel()
	r := newCalendarSite(t, fakegoogle.Options{Scale: scale})
	c := r.addCalendar(team, 1)
	if err := r.fake.SetNotifyProfile(calendar.NotifyProfile{LifeMS: 3_000}); err != nil {
		t.Fatal(err)
	}
	_, a := r.pushingCalendars()
	s := a.Store()
	r.calendars(s)
	w := r.watch(s, jobs.WatchKey{Account: ann, Kind: jobs.WatchCalendar, Calendar: team})
	if life, due := w.ExpiresAt.Sub(w.RenewedAt), w.RenewAt.Sub(w.RenewedAt); due < life*7/10-time.Millisecond || due > life*85/100 {
		t.Errorf("a channel that lives for %s is due after %s, want 70 to 85 %%", life, due)
	}
	r.fake.CloseChannels()
	r.add(c, calendar.Event{ID: "untold"}, "2026-03-09", "2026-03-10")
	r.until("what was not told of is there with the renewal", func() bool { return r.has(s, "untold") })
	if began := r.addedIn(s, c, "told"); began > 5*time.Second {
		t.Errorf("with the new channel the sync began %s after the change", began)
	}
}
