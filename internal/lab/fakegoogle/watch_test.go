package fakegoogle_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/api/gmail/v1"

	"headroom/internal/lab/fakegoogle"
	fakegmail "headroom/internal/lab/fakegoogle/gmail"
)

const (
	topic = "projects/my-project/topics/mail"
	hour  = 3_600_000 // ms
)

// A received is a push as it came in.
type received struct {
	auth string
	body struct {
		Message struct {
			Data      []byte `json:"data"`
			MessageID string `json:"messageId"`
		} `json:"message"`
		Subscription string `json:"subscription"`
	}
	user    string
	history uint64
}

// subscriber takes pushes, and answers the first refuse of them with 503.
func subscriber(t *testing.T, refuse int) (url string, pushes <-chan received) {
	t.Helper()
	got := make(chan received, 100)
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var p received
		p.auth = r.Header.Get("Authorization")
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &p.body)
		}
		var data struct {
			EmailAddress string
			HistoryID    uint64
		}
		if err == nil {
			err = json.Unmarshal(p.body.Message.Data, &data)
		}
		if err != nil {
			t.Errorf("push %s: %v", body, err)
		}
		p.user, p.history = data.EmailAddress, data.HistoryID
		got <- p
		if n.Add(1) <= int64(refuse) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, got
}

func next(t *testing.T, pushes <-chan received) received {
	t.Helper()
	select {
	case p := <-pushes:
		return p
	case <-time.After(10 * time.Second):
		t.Fatal("no push within 10 s")
		return received{}
	}
}

func watchRequest() *gmail.WatchRequest { return &gmail.WatchRequest{TopicName: topic} }

func TestAWatchedMailboxTellsItsTopic(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	to, pushes := subscriber(t, 1)
	if err := server.SetPush(fakegmail.Push{URL: to, Audience: "https://headroom.example/push/gmail",
		ServiceAccount: "push@my-project.iam.gserviceaccount.com", Subscription: "projects/my-project/subscriptions/mail",
		PublishEveryMS: hour}); err != nil {
		t.Fatal(err)
	}
	users := client(t, url, ann)
	before := box.HistoryID()
	w, err := users.Watch("me", watchRequest()).Do()
	if err != nil || w.HistoryId != before {
		t.Fatalf("Watch = %+v, %v, want history id %d", w, err, before)
	}
	if life := time.Until(time.UnixMilli(w.Expiration)); life > 7*24*time.Hour || life < 7*24*time.Hour-time.Minute {
		t.Errorf("the watch lasts %s, want seven days", life)
	}
	first := next(t, pushes)
	if again := next(t, pushes); again.body.Message.MessageID != first.body.Message.MessageID {
		t.Errorf("after a refused push came %q, want %q again", again.body.Message.MessageID, first.body.Message.MessageID)
	}
	if first.user != ann || first.history != before || first.body.Subscription != "projects/my-project/subscriptions/mail" {
		t.Errorf("the first push = %+v", first)
	}
	claims := claimsOf(t, first.auth)
	if claims["aud"] != "https://headroom.example/push/gmail" || claims["email"] != "push@my-project.iam.gserviceaccount.com" ||
		claims["email_verified"] != true || claims["iss"] != url {
		t.Errorf("claims = %v", claims)
	}
	box.Add([]byte("Subject: dropped\r\n\r\nx")) // too soon after the first
	if c := server.Pushed(); c.Published != 1 || c.Dropped != 1 {
		t.Errorf("counts = %+v, want the second notice dropped", c)
	}
	box.ExpireWatch()
	box.Add([]byte("Subject: after the end\r\n\r\nx"))
	if c := server.Pushed(); c.Published != 1 || c.Dropped != 1 {
		t.Errorf("counts = %+v after the watch has ended", c)
	}
	units := server.Meter().Users[0].Units
	if units != 100 {
		t.Errorf("a watch costs %d units, want 100", units)
	}
}

func TestAWatchThatWasStoppedOrFilteredIsSilent(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	if err := server.SetPush(fakegmail.Push{PublishEveryMS: hour}); err != nil {
		t.Fatal(err)
	}
	users := client(t, url, ann)
	request := watchRequest()
	request.LabelIds, request.LabelFilterBehavior = []string{"SPAM"}, "exclude"
	if _, err := users.Watch("me", request).Do(); err != nil {
		t.Fatal(err)
	}
	published := server.Pushed() // of the watch itself
	box.Add([]byte("Subject: spam\r\n\r\nx"), "SPAM")
	if got := server.Pushed(); got != published {
		t.Errorf("counts = %+v after spam, want %+v", got, published)
	}
	box.Add([]byte("Subject: mail\r\n\r\nx"))
	if got := server.Pushed(); got.Dropped != published.Dropped+1 {
		t.Errorf("counts = %+v after mail, want one more noticed", got)
	}
	if err := users.Stop("me").Do(); err != nil {
		t.Fatal(err)
	}
	if _, ok := box.Watch(); ok {
		t.Error("the watch lasts after stop")
	}
	for name, request := range map[string]*gmail.WatchRequest{
		"no topic": {}, "no topic's name": {TopicName: "mail"},
		"no behaviour": {TopicName: topic, LabelFilterBehavior: "some"},
	} {
		if _, err := users.Watch("me", request).Do(); err == nil || !strings.Contains(err.Error(), "400") {
			t.Errorf("%s: %v, want 400", name, err)
		}
	}
}

func TestDuplicatesOnDemand(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	server.AddMailbox(ann)
	to, pushes := subscriber(t, 0)
	resp, err := http.Post(url+"/_fake/push", "application/json", strings.NewReader(fmt.Sprintf(`{"push": {"url": %q, "duplicates": 2, "watch_life_ms": 60000}}`, to)))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("POST push = %v, %v", resp, err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	w, err := client(t, url, ann).Watch("me", watchRequest()).Do()
	if err != nil || time.Until(time.UnixMilli(w.Expiration)) > time.Minute {
		t.Fatalf("Watch = %+v, %v, want a minute of it", w, err)
	}
	ids := map[string]int{}
	for range 3 {
		ids[next(t, pushes).body.Message.MessageID]++
	}
	if len(ids) != 1 {
		t.Errorf("message ids = %v, want one three times", ids)
	}
}

// claimsOf reads a bearer token's claims; the signature is for those who check it.
func claimsOf(t *testing.T, auth string) map[string]any {
	t.Helper()
	parts := strings.Split(strings.TrimPrefix(auth, "Bearer "), ".")
	if len(parts) != 3 {
		t.Fatalf("Authorization = %q", auth)
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]any{}
	if err := json.Unmarshal(text, &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}
