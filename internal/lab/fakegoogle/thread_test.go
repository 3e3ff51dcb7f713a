package fakegoogle_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/api/gmail/v1"

	"headroom/internal/lab/fakegoogle"
)

// reply is a message of a moment that answers another.
func reply(minute int, to string) []byte {
	return fmt.Appendf(nil, "Date: Mon, 02 Mar 2026 11:%02d:00 +0000\r\nSubject: reply %d\r\nIn-Reply-To: %s\r\n\r\nreply %d\r\n", minute, minute, to, minute)
}

func TestThreadsList(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	var want []string // threads, those with the newest message first
	for i := range 7 {
		want = append(want, box.Add(mail(i)))
	}
	slices.Reverse(want)
	box.Add(reply(1, "<2@example.com>"))
	box.Add(reply(2, "<2@example.com>"))
	answered := want[4]
	want = slices.Insert(slices.Delete(want, 4, 5), 0, answered)
	spam := box.Add(mail(30), "SPAM")
	users := client(t, url, ann)

	var got []string
	pages := 0
	err := users.Threads.List("me").MaxResults(3).Pages(t.Context(), func(p *gmail.ListThreadsResponse) error {
		pages++
		for _, thread := range p.Threads {
			got = append(got, thread.Id)
		}
		return nil
	})
	if err != nil || !slices.Equal(got, want) || pages != 3 {
		t.Errorf("threads %v on %d pages, %v\nwant %v on 3", got, pages, err, want)
	}
	first, err := users.Threads.List("me").MaxResults(1).Do()
	if err != nil || first.Threads[0].Snippet != "reply 2" || first.Threads[0].HistoryId == 0 || first.ResultSizeEstimate != 201 {
		t.Errorf("first thread = %+v, %v; want the text of its newest message", first, err)
	}
	// By the newest message that is chosen, a thread lies elsewhere.
	chosen, err := users.Threads.List("me").Q("body").LabelIds("INBOX").Do()
	if err != nil || len(chosen.Threads) != 7 || chosen.Threads[4].Id != answered {
		t.Errorf("chosen = %+v, %v; want %s fifth", chosen, err, answered)
	}
	if none, err := users.Threads.List("me").Q("in:spam").Do(); err != nil || len(none.Threads) != 1 || none.Threads[0].Id != spam {
		t.Errorf("threads in spam = %v, %v; want %s", none, err, spam)
	}
	messages, err := users.Messages.List("me").MaxResults(1).Do()
	if err != nil {
		t.Fatal(err)
	}
	_, err = users.Threads.List("me").PageToken(messages.NextPageToken).Do()
	wantError(t, err, 400, "Invalid pageToken", "invalidArgument", "INVALID_ARGUMENT")
}

func TestThreadsGet(t *testing.T) {
	server, url := start(t, fakegoogle.Options{Prices: "gmail-2026-10"})
	box := server.AddMailbox(ann)
	second := box.Add(mail(9))
	first := box.Add([]byte("Date: Mon, 02 Mar 2026 09:00:00 +0000\r\nReferences: <9@example.com>\r\nSubject: before\r\n\r\nearly"), "TRASH")
	box.Add(mail(10))
	users := client(t, url, ann)
	for _, format := range []string{"", "full", "metadata", "minimal"} {
		call := users.Threads.Get("me", second)
		if format != "" {
			call.Format(format)
		}
		got, err := call.MetadataHeaders("subject").Do()
		if err != nil || got.Id != second || len(got.Messages) != 2 || got.Messages[0].Id != first || got.Messages[1].Id != second {
			t.Fatalf("thread as %q = %+v, %v; want its two messages, oldest first", format, got, err)
		}
		p := got.Messages[1].Payload
		switch {
		case format == "minimal" && p != nil,
			format == "metadata" && (len(p.Headers) != 1 || p.Body != nil),
			(format == "full" || format == "") && p.Body.Size == 0:
			t.Errorf("as %q its payload is %+v", format, p)
		}
		if got.HistoryId != got.Messages[0].HistoryId || got.Messages[1].Snippet != "Body of message 9." {
			t.Errorf("as %q: %+v; want the newest history id and snippets", format, got)
		}
	}
	_, err := users.Threads.Get("me", second).Format("raw").Do()
	wantError(t, err, 400, "Invalid value at 'format' (type.googleapis.com/google.apps.gmail.v1.MessageFormat), \"raw\"", "invalidArgument", "INVALID_ARGUMENT")
	_, err = users.Threads.Get("me", first).Do()
	wantError(t, err, 404, "Requested entity was not found.", "notFound", "NOT_FOUND")
	u := server.Meter().User(ann)
	if u.Fetches != 4 || u.Refetched != 2 || u.Units != 2*120+2*40+120+120 {
		t.Errorf("meter: %d fetches, %d refetched, %d units; want 4, 2 and 560", u.Fetches, u.Refetched, u.Units)
	}
	if box.Delete(second); server.Mailbox(ann).Delete(second) {
		t.Error("deleted twice")
	}
	if got, err := users.Threads.Get("me", second).Do(); err != nil || len(got.Messages) != 1 {
		t.Errorf("thread without its first message = %+v, %v", got, err)
	}
}
