package google

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headroom/jobs"
)

// answering is a Google that gives every call one answer.
func answering(t *testing.T, answer string) *Google {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return newTestGoogle(t, Options{Endpoint: server.URL, Ledger: newLedger(t, 1000)})
}

func TestAnOddItemCostsNoNeighbour(t *testing.T) {
	t.Run("messages.list", func(t *testing.T) {
		page, err := open(t, answering(t, `{"messages":[null,{"id":"a","threadId":7},5,{"id":12},{"threadId":"x"},[],{"id":{}}],"nextPageToken":3}`)).List(t.Context(), jobs.Search{}, "")
		if diff := cmp.Diff(jobs.Page{IDs: []string{"a", "12"}, Threads: []string{"7", ""}, Next: "3"}, page); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	})
	t.Run("history.list", func(t *testing.T) {
		page, err := open(t, answering(t, `{"history":[null,{"id":5,"messagesAdded":[null,{"message":null},{"message":{"id":"a","labelIds":"INBOX"}}]},
			{"id":{},"messagesDeleted":[{"message":{"id":"b"}}]},"x",{"id":"7","labelsAdded":{"labelIds":["L"],"message":{"id":"c","labelIds":["L",null,{}]}}}],"historyId":9}`)).History(t.Context(), 4, "")
		want := jobs.HistoryPage{HistoryID: 9, Records: []jobs.HistoryRecord{
			{ID: 5, Changes: []jobs.Change{{Kind: jobs.MessageAdded, ID: "a", Labels: []string{"INBOX"}}}},
			{ID: 5, Changes: []jobs.Change{{Kind: jobs.MessageDeleted, ID: "b"}}},
			{ID: 7, Changes: []jobs.Change{{Kind: jobs.LabelsAdded, ID: "c", Labels: []string{"L"}, Changed: []string{"L"}}}},
		}}
		if diff := cmp.Diff(want, page); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	})
	t.Run("labels.list", func(t *testing.T) {
		labels, err := open(t, answering(t, `{"labels":[null,{"id":"A","name":5},{"name":"x"},{"id":7}]}`)).Labels(t.Context())
		if diff := cmp.Diff([]jobs.Label{{ID: "A", Name: "5"}, {ID: "7"}}, labels); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	})
	for _, format := range []jobs.Format{jobs.FormatMetadataFirst, jobs.FormatFull} {
		t.Run("threads.get "+string(format), func(t *testing.T) {
			all, err := open(t, answering(t, `{"id":"t","messages":[null,{"id":"a","historyId":5,"payload":{"headers":[null,{"name":"subject","value":7}],"parts":[null]}},{"id":[]},"x"]}`)).Thread(t.Context(), "t", format)
			if err != nil || len(all) != 1 || all[0].ID != "a" || all[0].HistoryID != 5 || all[0].Subject != "7" || (len(all[0].JSON) > 0) != (format == jobs.FormatFull) {
				t.Errorf("got %+v, %v", all, err)
			}
		})
	}
	t.Run("calendarList.list", func(t *testing.T) {
		var list jobs.CalendarListPage
		err := openCalendar(t, answering(t, `{"items":[null,{"id":"a","primary":"true","summary":5},{"summary":"x"}],"nextSyncToken":4}`)).Calendars(t.Context(), "", "",
			func(p jobs.CalendarListPage) error { list = p; return nil })
		if err != nil || len(list.Calendars) != 1 || !list.Calendars[0].Primary || list.Calendars[0].Summary != "5" || list.SyncToken != "4" {
			t.Errorf("got %+v, %v", list, err)
		}
	})
	t.Run("watches", func(t *testing.T) {
		g := answering(t, `{"historyId":5,"expiration":1764547200000,"resourceId":7,"kind":[]}`)
		until, err := open(t, g).Watch(t.Context(), "projects/p/topics/t")
		if err != nil || until.UnixMilli() != 1764547200000 {
			t.Errorf("watch until %s, %v", until, err)
		}
		resource, until, made, err := openCalendar(t, g).WatchCalendar(t.Context(), "c", "id", "token", "https://example.com")
		if err != nil || resource != "7" || until.UnixMilli() != 1764547200000 || !made {
			t.Errorf("channel of %q until %s, %v, %v", resource, until, made, err)
		}
	})
	t.Run("events.list", func(t *testing.T) {
		page, err := openCalendar(t, answering(t, `{"items":[null,{"id":5,"etag":12345,"originalStartTime":"2026-12-03","updated":7},{"summary":"x"}],"updated":[],"nextSyncToken":"s"}`)).eventPage(t, "c", "", "")
		if err != nil || len(page.Events) != 1 || page.Events[0].ID != "5" || page.Events[0].ETag != "12345" || page.Events[0].OriginalStart != "2026-12-03" ||
			string(page.Events[0].JSON) != `{"id":5,"etag":12345,"originalStartTime":"2026-12-03","updated":7}` {
			t.Errorf("got %+v, %v", page, err)
		}
	})
}

// What the reading goes on by must be there: without it the rest would be taken for
// nothing, and what is stored for deleted.
func TestAPageThatCannotBeReadIsAnError(t *testing.T) {
	for _, answer := range []string{`null`, `[]`, `"x"`, ``, `{`, `{"messages":{}}`, `{"messages":"none"}`, `{"messages":[],"nextPageToken":{}}`, `{"messages":[],"nextPageToken":["x"]}`} {
		page, err := open(t, answering(t, answer)).List(t.Context(), jobs.Search{}, "")
		if call, ok := errors.AsType[*jobs.CallError](err); !ok || call.Class != jobs.ClassTransient || call.Reason == "network" {
			t.Errorf("%s: %+v, %v, want it to be tried again as a fault of the answer", answer, page, err)
		}
	}
	_, err := open(t, answering(t, `{"history":[],"historyId":{}}`)).History(t.Context(), 4, "")
	if call, ok := errors.AsType[*jobs.CallError](err); !ok || !strings.Contains(call.Reason, "field historyId") {
		t.Errorf("history: %v", err)
	}
}

func TestAttachmentsOfNothing(t *testing.T) {
	pdf, text := "application/pdf", "text/plain"
	for _, tt := range []struct {
		name, payload string
		want          []jobs.Attachment
	}{
		{"empty data", `{"parts":[{"partId":"0","filename":"a.txt","mimeType":"text/plain","body":{"size":0,"data":""}}]}`,
			[]jobs.Attachment{{Part: "0", Filename: "a.txt", MimeType: text, Content: []byte{}}}},
		{"no data", `{"parts":[{"partId":"0","filename":"a.txt","body":{"size":0}}]}`, []jobs.Attachment{{Part: "0", Filename: "a.txt", Content: []byte{}}}},
		{"no body", `{"parts":[{"partId":"0","filename":"a.txt"}]}`, []jobs.Attachment{{Part: "0", Filename: "a.txt", Content: []byte{}}}},
		{"data in the message, in the standard alphabet", `{"parts":[{"partId":"0","filename":"a","body":{"size":3,"data":"+/+/"}}]}`,
			[]jobs.Attachment{{Part: "0", Filename: "a", Size: 3, Content: []byte("\xfb\xff\xbf")}}},
		{"one id twice", `{"parts":[{"partId":"1","filename":"a","body":{"attachmentId":"x","size":1}},{"partId":"1","filename":"b","body":{"attachmentId":"y","size":2}},{"partId":"1-2","filename":"c"}]}`,
			[]jobs.Attachment{{Part: "1", Filename: "a", Size: 1, ID: "x"}, {Part: "1-2", Filename: "b", Size: 2, ID: "y"}, {Part: "1-2-2", Filename: "c", Content: []byte{}}}},
		{"nothing but one", `{"partId":"","mimeType":"application/pdf","filename":"a.pdf","body":{"attachmentId":"x","size":"9"}}`,
			[]jobs.Attachment{{Part: "0", Filename: "a.pdf", MimeType: pdf, Size: 9, ID: "x"}}},
		{"nothing but one without a name", `{"mimeType":"application/pdf","body":{"attachmentId":"x","size":9}}`, []jobs.Attachment{{Part: "0", MimeType: pdf, Size: 9, ID: "x"}}},
		{"parts without ids", `{"parts":[{"parts":[{"filename":"a"},{"filename":"b"}]}]}`,
			[]jobs.Attachment{{Part: "0.0", Filename: "a", Content: []byte{}}, {Part: "0.1", Filename: "b", Content: []byte{}}}},
		{"text and multiparts are none", `{"mimeType":"multipart/mixed","filename":"","body":{"size":0},"parts":[{"partId":"0","filename":"","body":{"size":3,"data":"SGkh"}}]}`, nil},
	} {
		f, odd, err := fullOf([]byte(`{"id":"a","payload":` + tt.payload + `}`))
		if diff := cmp.Diff(tt.want, f.Attachments); err != nil || len(odd) > 0 || diff != "" {
			t.Errorf("%s: %v, %v\n%s", tt.name, odd, err, diff)
		}
	}
	for _, tt := range []struct {
		answer string
		size   int64 // as the message has it
		want   string
		fails  bool
	}{
		{`{"size":0}`, 0, "", false},
		{`{"size":0,"data":""}`, 5, "", false},
		{`{}`, 0, "", false},
		{`{}`, 5, "", true},
		{`{"size":"3","data":"SG\nkh"}`, 3, "Hi!", false},
		{`{"size":5,"data":"SGkh"}`, 5, "", true},
		{`{"data":"+/+/"}`, 3, "\xfb\xff\xbf", false},
		{`{"data":7}`, 3, "", true},
	} {
		var content bytes.Buffer
		n, err := open(t, answering(t, tt.answer)).Attachment(t.Context(), "m", jobs.Attachment{ID: "x", Size: tt.size}, &content)
		if (err != nil) != tt.fails || !tt.fails && (content.String() != tt.want || n != int64(len(tt.want))) {
			t.Errorf("%s: %q, %d, %v", tt.answer, &content, n, err)
		}
	}
}
