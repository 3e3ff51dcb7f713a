package gmail

import (
	"net/http/httptest"
	"strings"
	"testing"

	"headroom/internal/lab/fakegoogle/discovery"
	"headroom/internal/lab/fakegoogle/meter"
)

// Every answer must have only fields that Google's own schema has, with types
// that its clients can read.
func TestAnswersFitGooglesSchema(t *testing.T) {
	d := discovery.Read(t, "gmail", "v1")
	for name, answer := range map[string]any{
		"Profile": profileAnswer{}, "ListMessagesResponse": messageList{}, "Message": messageAnswer{},
		"ListLabelsResponse": labelList{}, "Label": label{}, "ListHistoryResponse": historyList{},
		"ListThreadsResponse": threadList{}, "Thread": threadAnswer{}, "MessagePartBody": partBody{}, "WatchResponse": watchAnswer{},
		"Message ": messageRef{},
	} {
		name = strings.TrimSpace(name)
		for _, problem := range d.Misfits(name, answer) {
			t.Error(problem)
		}
	}
}

// What is served must be served where Google's own clients look for it, and have a
// price of its own.
func TestMethodsAreServedWhereGoogleServesThem(t *testing.T) {
	served := map[string]string{} // verb and path, with a * for each id, by method
	for verb, paths := range map[string]map[string]string{"GET ": methods, "POST ": posted} {
		for path, method := range paths {
			served[method] = verb + "gmail/v1/users/*/" + strings.ReplaceAll(path, "ID", "*")
		}
	}
	d := discovery.Read(t, "gmail", "v1")
	for _, problem := range d.Misserved(served) {
		t.Error(problem)
	}
	prices, err := meter.GmailPriceList("gmail-2026-05")
	if err != nil {
		t.Fatal(err)
	}
	d.Walk(func(m discovery.Method) {
		if _, ok := served[m.ID]; ok && !prices.Knows(m.ID) {
			t.Errorf("%s has no price", m.ID)
		}
		if upload := m.MediaUpload.Protocols.Simple.Path; upload != "" && served[m.ID] != "" {
			r := httptest.NewRequest(m.HTTPMethod, strings.ReplaceAll(upload, "{userId}", "me"), nil)
			if op, ok := Route(r); !ok || op.Method != m.ID || !op.upload {
				t.Errorf("an upload to %s is %+v, %t", upload, op, ok)
			}
		}
	})
}
