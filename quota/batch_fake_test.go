package quota_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"headroom/internal/lab/fakegoogle"
	"headroom/quota"
	"headroom/quota/price"
)

// TestBatchCostsWhatGoogleSays: what a batch is charged agrees with a Google
// that counts by tables of its own, for each price list and kind of part.
func TestBatchCostsWhatGoogleSays(t *testing.T) {
	for _, name := range []string{"gmail-legacy", "gmail-2026-05", "gmail-2026-10"} {
		t.Run(name, func(t *testing.T) {
			fake, err := fakegoogle.New(fakegoogle.Options{Prices: name})
			if err != nil {
				t.Fatal(err)
			}
			id := fake.AddMailbox("ann@example.com").Add([]byte("Subject: one\r\n\r\nbody\r\n"))
			url, shutdown, err := fake.Listen("127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			base := &http.Transport{}
			t.Cleanup(func() {
				base.CloseIdleConnections()
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				if err := shutdown(ctx); err != nil {
					t.Error(err)
				}
			})
			list, err := price.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			ledger := newLedger(t, newClient(t, realRedis.Addr), quota.Project{Lists: []*price.List{list}}, 1)
			client := &http.Client{Transport: &quota.Transport{Base: base, Limiter: ledger}}
			caller := quota.Caller{Project: "p", User: "ann@example.com", Lane: quota.Interactive}

			lines := []string{"GET /gmail/v1/users/me/profile", "GET /gmail/v1/users/me/labels", "GET /gmail/v1/users/me/labels/INBOX",
				"GET /gmail/v1/users/me/messages?q=subject:one", "GET " + url + "/gmail/v1/users/me/history?startHistoryId=1 HTTP/1.1"}
			for _, format := range []string{"", "?format=raw", "?format=full", "?format=metadata", "?format=minimal"} {
				lines = append(lines, "GET /gmail/v1/users/me/messages/"+id+format)
			}
			for _, path := range []string{"/batch", "/batch/gmail/v1"} {
				ctx := quota.WithCaller(t.Context(), caller)
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, strings.NewReader(batchOf(lines...)))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Content-Type", "multipart/mixed; boundary="+boundary)
				resp, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if n := bytes.Count(answer, []byte("HTTP/1.1 ")); err != nil || n != len(lines) {
					t.Fatalf("%d answers to %d calls, %v: %s", n, len(lines), err, answer)
				}
			}
			used, err := ledger.Peek(t.Context(), caller, "gmail")
			if err != nil {
				t.Fatal(err)
			}
			google := fake.Meter().User(caller.User)
			if got := fmt.Sprint(used.Usage[0].Used, used.Usage[1].Used, 2*len(lines)); got != fmt.Sprint(google.Units, google.Units, google.Calls) || google.Units == 0 {
				t.Errorf("the ledger counts %s units and calls, Google %d units of %d calls", got, google.Units, google.Calls)
			}
		})
	}
}
