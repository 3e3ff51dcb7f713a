package fakegoogle_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/api/calendar/v3"

	"headroom/internal/lab/fakegoogle"
	fakecalendar "headroom/internal/lab/fakegoogle/calendar"
)

// webhook takes messages of channels, and answers the first refuse with 503.
func webhook(t *testing.T, refuse int) (url string, messages <-chan http.Header) {
	t.Helper()
	got := make(chan http.Header, 100)
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.ContentLength != 0 {
			t.Errorf("%s with %d bytes, want POST without a body", r.Method, r.ContentLength)
		}
		if n.Add(1) <= int64(refuse) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		got <- r.Header
	}))
	t.Cleanup(server.Close)
	return server.URL, got
}

// nextMessage waits for one and checks its state and number.
func nextMessage(t *testing.T, messages <-chan http.Header, state string, number int) http.Header {
	t.Helper()
	select {
	case h := <-messages:
		if h.Get("X-Goog-Resource-State") != state || h.Get("X-Goog-Message-Number") != strconv.Itoa(number) {
			t.Errorf("message %s %s, want %s %d", h.Get("X-Goog-Resource-State"), h.Get("X-Goog-Message-Number"), state, number)
		}
		return h
	case <-time.After(10 * time.Second):
		t.Fatalf("no message %s %d within 10 s", state, number)
		return nil
	}
}

func TestAChannelTellsOfEveryChange(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	c := primary(t, server)
	address, messages := webhook(t, 0)
	service := calendarClient(t, url, ann)
	asked := &calendar.Channel{Id: "c-1", Type: "web_hook", Address: address, Token: "secret", Expiration: time.Now().Add(time.Hour).UnixMilli()}
	opened, err := service.Events.Watch("primary", asked).Do()
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(time.UnixMilli(opened.Expiration)); opened.Kind != "api#channel" || opened.Id != "c-1" || left < 50*time.Minute || left > time.Hour {
		t.Errorf("channel %+v", opened)
	}
	h := nextMessage(t, messages, "sync", 1)
	if h.Get("X-Goog-Channel-ID") != "c-1" || h.Get("X-Goog-Channel-Token") != "secret" || h.Get("X-Goog-Resource-ID") != opened.ResourceId ||
		h.Get("X-Goog-Channel-Expiration") != time.UnixMilli(opened.Expiration).UTC().Format(http.TimeFormat) {
		t.Errorf("headers %v of channel %+v", h, opened)
	}
	added := mustAdd(t, c, meeting("m", "2026-03-02T09:00:00", 0))
	nextMessage(t, messages, "exists", 2)
	if err := c.Cancel(added.ID); err != nil {
		t.Fatal(err)
	}
	nextMessage(t, messages, "exists", 3)

	_, err = service.Events.Watch("primary", asked).Do()
	wantReason(t, "the same channel", err, 400, "channelIdNotUnique")
	second, err := service.CalendarList.Watch(&calendar.Channel{Id: "c-2", Type: "web_hook", Address: address, Params: map[string]string{"ttl": "999999999"}}).Do()
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(time.UnixMilli(second.Expiration)); left > 7*24*time.Hour || left < 6*24*time.Hour {
		t.Errorf("a channel that asks for ages lasts %s", left)
	}
	nextMessage(t, messages, "sync", 1)
	c.Hide(true)
	if h := nextMessage(t, messages, "exists", 2); h.Get("X-Goog-Channel-ID") != "c-2" {
		t.Errorf("the list changed, and %s tells", h.Get("X-Goog-Channel-ID"))
	}

	if err := service.Channels.Stop(&calendar.Channel{Id: "c-1", ResourceId: opened.ResourceId}).Do(); err != nil {
		t.Fatal(err)
	}
	wantReason(t, "stopped twice", service.Channels.Stop(&calendar.Channel{Id: "c-1", ResourceId: opened.ResourceId}).Do(), 404, "notFound")
	mustAdd(t, c, meeting("m", "2026-03-02T09:00:00", 0))
	if r := server.Notifications(); len(r.Channels) != 1 || r.Channels[0].ID != "c-2" || r.Waiting != 0 || len(messages) != 0 {
		t.Errorf("after one stopped: %+v", r)
	}
}

func TestChannelsMisbehaveOnDemand(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	c := primary(t, server)
	address, messages := webhook(t, 1) // the first message comes at the second try
	do(t, "POST", url+"/_fake/notifications", `{"life_ms":3600000}`, 200)
	service := calendarClient(t, url, ann)
	opened, err := service.Events.Watch("primary", &calendar.Channel{Id: "c", Type: "web_hook", Address: address}).Do()
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(time.UnixMilli(opened.Expiration)); left > time.Hour {
		t.Errorf("it lasts %s, want an hour", left)
	}
	nextMessage(t, messages, "sync", 1)

	set := func(h fakecalendar.NotifyProfile) {
		t.Helper()
		if err := server.SetNotifyProfile(h); err != nil {
			t.Fatal(err)
		}
		mustAdd(t, c, meeting("m", "2026-03-02T09:00:00", 0))
	}
	set(fakecalendar.NotifyProfile{Duplicate: true})
	nextMessage(t, messages, "exists", 2)
	nextMessage(t, messages, "exists", 2)
	set(fakecalendar.NotifyProfile{Drop: true})
	before := time.Now()
	set(fakecalendar.NotifyProfile{DelayMS: 100})
	nextMessage(t, messages, "exists", 4)
	if waited := time.Since(before); waited < 100*time.Millisecond {
		t.Errorf("told after %s, want 100 ms", waited)
	}
	r := server.Notifications()
	if r.Dropped != 1 || r.Failed != 0 || len(r.Channels) != 1 || r.Channels[0].Messages != 4 {
		t.Errorf("%+v", r)
	}
	do(t, "POST", url+"/_fake/notifications", `{"close_channels":true}`, 200)
	if r := server.Notifications(); len(r.Channels) != 0 {
		t.Errorf("channels %+v, want none", r.Channels)
	}
}

func TestWhatAChannelNeeds(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	primary(t, server)
	events := calendarClient(t, url, ann).Events
	for reason, asked := range map[string]*calendar.Channel{
		"required":                {Type: "web_hook", Address: "http://localhost/"},
		"invalidValue":            {Id: "c", Type: "smoke", Address: "http://localhost/"},
		"push.webhookUrlNotHttps": {Id: "c", Type: "web_hook", Address: "mailto:ann@example.com"},
	} {
		_, err := events.Watch("primary", asked).Do()
		wantReason(t, reason, err, 400, reason)
	}
	_, err := events.Watch("nothing@group.calendar.google.com", &calendar.Channel{Id: "c", Type: "web_hook", Address: "http://localhost/"}).Do()
	wantReason(t, "no calendar", err, 404, "notFound")
}
