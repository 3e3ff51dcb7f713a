package fakegoogle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/googleapi"

	"headroom/internal/lab/fakegoogle"
	fakegmail "headroom/internal/lab/fakegoogle/gmail"
)

// dated is a message of a moment, given in RFC 1123 form.
func dated(date, subject string) []byte {
	return fmt.Appendf(nil, "From: Carol <carol@example.com>\r\nTo: ann@example.com\r\nDate: %s\r\nSubject: %s\r\n\r\nhello world\r\n", date, subject)
}

func ids(list *gmail.ListMessagesResponse) []string {
	var ids []string
	for _, m := range list.Messages {
		ids = append(ids, m.Id)
	}
	return ids
}

func TestListPagesNewestFirst(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	var want []string
	for i := range 1203 {
		// Many share a second, and some arrive late.
		want = append(want, box.Add(dated(fmt.Sprintf("Mon, 02 Mar 2026 10:%02d:00 +0000", i/10%60), "x")))
	}
	var infos []string
	for _, m := range box.Messages() {
		infos = append(infos, m.ID)
	}
	users := client(t, url, ann)
	var got []string
	var sizes []int
	err := users.Messages.List("me").MaxResults(9999).Pages(t.Context(), func(page *gmail.ListMessagesResponse) error {
		sizes = append(sizes, len(page.Messages))
		got = append(got, ids(page)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(sizes) != "[500 500 203]" {
		t.Errorf("pages of %v, want 500 500 203", sizes)
	}
	if !slices.Equal(got, infos) {
		t.Error("listing differs from Messages()")
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("listed %d ids, want each of %d once", len(got), len(want))
	}
	first, err := users.Messages.List("me").Do()
	if err != nil || len(first.Messages) != 100 || first.ResultSizeEstimate != 201 {
		t.Errorf("page by default = %d messages, estimate %d, %v; want 100 and 201", len(first.Messages), first.ResultSizeEstimate, err)
	}
}

func TestPageTokensAreBoundToTheQuestion(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	for i := range 30 {
		box.Add(mail(i))
	}
	server.AddMailbox(bob).Add(mail(1))
	users := client(t, url, ann)
	page, err := users.Messages.List("me").MaxResults(10).Q("subject:number").Do()
	if err != nil {
		t.Fatal(err)
	}
	token := page.NextPageToken
	dead := func(err error) {
		t.Helper()
		wantError(t, err, 400, "Invalid pageToken", "invalidArgument", "INVALID_ARGUMENT")
	}
	_, err = users.Messages.List("me").Q("subject:numbers").PageToken(token).Do()
	dead(err)
	_, err = users.Messages.List("me").Q("subject:number").LabelIds("INBOX").PageToken(token).Do()
	dead(err)
	_, err = users.Messages.List("me").Q("subject:number").PageToken("garbage").Do()
	dead(err)
	_, err = client(t, url, bob).Messages.List("me").Q("subject:number").PageToken(token).Do()
	dead(err)

	// Changes between pages neither repeat nor lose what was there.
	box.Add(dated("Tue, 03 Mar 2026 10:00:00 +0000", "number new"))
	box.Delete(page.Messages[9].Id)
	next, err := users.Messages.List("me").Q("subject:number").MaxResults(500).PageToken(token).Do()
	if err != nil || len(next.Messages) != 20 || slices.Contains(ids(next), page.Messages[8].Id) {
		t.Errorf("second page = %d messages, %v; want the other 20", len(next.Messages), err)
	}
	box.ExpirePageTokens()
	_, err = users.Messages.List("me").Q("subject:number").PageToken(token).Do()
	dead(err)
}

func TestQuery(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	names := map[string]string{}
	add := func(name string, raw []byte, labels ...string) { names[box.Add(raw, labels...)] = name }
	add("old", dated("Sun, 01 Mar 2026 07:59:59 +0000", "=?utf-8?q?Caf=C3=A9?= news"), "INBOX", "Projects/Alpha")
	add("new", dated("Sun, 01 Mar 2026 08:00:00 +0000", "second"), "INBOX", "UNREAD")
	add("chat", dated("Mon, 02 Mar 2026 08:00:00 +0000", "third"), "CHAT")
	add("spam", dated("Tue, 03 Mar 2026 08:00:00 +0000", "fourth"), "SPAM")
	add("trash", dated("Wed, 04 Mar 2026 08:00:00 +0000", "fifth"), "TRASH", "INBOX")
	add("mail", mail(5), "SENT")
	add("file", []byte("Date: Fri, 27 Feb 2026 08:00:00 +0000\r\nSubject: foo bar\r\nList-ID: <news.example.com>\r\n"+
		"Content-Type: application/pdf; name=Report.PDF\r\n\r\n"+strings.Repeat("x", 2000)), "CATEGORY_UPDATES")

	for _, test := range []struct {
		q    string
		want string
	}{
		{"", "mail chat new old file"},
		{"-in:chats", "mail new old file"},
		{"in:inbox", "new old"},
		{"in:spam", "spam"},
		{"label:trash", "trash"},
		{"in:anywhere", "trash spam mail chat new old file"},
		{"is:unread", "new"},
		{"is:read in:inbox", "old"},
		{`label:"Projects/Alpha"`, "old"},
		{"label:projects-alpha", "old"},
		{"-label:projects-alpha -in:chats", "mail new file"},
		{"after:1772352000", "mail chat new"},
		{"before:1772352000", "old file"},
		{"after:2026/03/01 before:2026/03/02", "new"}, // a day is one of PST
		{"before:2026-3-1", "old file"},
		{"after:1772352000 before:1772438400", "new"},
		{"from:carol", "chat new old"},
		{"-from:carol", "mail file"},
		{"to:bob@example.com", "mail"},
		{"subject:café", "old"},
		{"hello", "chat new old"},
		{`"hello world"`, "chat new old"},
		{`"world hello"`, ""},
		{"hell", ""},
		{"body message", "mail"},
		{"rfc822msgid:<5@example.com>", "mail"},
		{"larger:150", "mail file"},
		{"larger:1K", "file"},
		{"smaller:150", "chat new old"},
		{"newer:1772352000 older:2026/03/02", "new"},
		{"older_than:900y", ""},
		{"newer_than:900y is:unread", "new"},
		{"subject:second OR subject:third", "chat new"},
		{"hello subject:second OR subject:third", "chat new"},
		{"from:carol (is:unread OR in:chats)", "chat new"},
		{"{is:unread in:chats}", "chat new"},
		{"subject:(second OR third)", "chat new"},
		{"subject:{second café}", "new old"},
		{"-{is:unread in:chats}", "mail old file"},
		{"-(from:carol is:unread)", "mail chat old file"},
		{"in:spam OR is:unread", "spam new"},
		{"-in:spam is:unread", "new"},
		{"has:attachment", "file"},
		{"-has:attachment is:unread", "new"},
		{"filename:pdf", "file"},
		{"filename:report.pdf OR is:unread", "new file"},
		{"category:updates", "file"},
		{"list:news.example.com", "file"},
		{"has:userlabels", "old"},
		{"foo:bar", "file"}, // no operator: text
		{"bar:foo", ""},
		{"is:unread OR", "new"},
		{"OR ) is:unread (", "new"},
		{"is:unread AND in:inbox", "new"},
	} {
		var got []string
		list, err := client(t, url, ann).Messages.List("me").Q(test.q).Do()
		if err != nil {
			t.Errorf("q=%s: %v", test.q, err)
			continue
		}
		for _, id := range ids(list) {
			got = append(got, names[id])
		}
		if joined := strings.Join(got, " "); joined != test.want {
			t.Errorf("q=%s lists %q, want %q", test.q, joined, test.want)
		}
	}
	for _, q := range []string{"after:yesterday", "larger:much", "is:purple", "has:yellow-star", "subject:", "newer_than:2h", strings.Repeat("(", 100) + "a"} {
		if _, err := client(t, url, ann).Messages.List("me").Q(q).Do(); err == nil {
			t.Errorf("q=%s was served, want 400: the fake cannot read it", q)
		}
	}
}

func TestDatesOfAQuery(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	noon := box.Add(dated("Sun, 01 Mar 2026 12:00:00 +0000", "noon"))
	late := box.Add(dated("Sun, 01 Mar 2026 23:30:00 +0000", "late"))
	for _, test := range []struct {
		profile fakegmail.Profile
		q       string
		want    []string
	}{
		{fakegmail.Profile{}, "after:1772368200", []string{late}}, // 12:30 UTC
		{fakegmail.Profile{}, "before:1772368200", []string{noon}},
		{fakegmail.Profile{}, "before:2026/03/02", []string{late, noon}}, // 08:00 UTC
		{fakegmail.Profile{Zone: "Europe/Berlin"}, "before:2026/03/02", []string{noon}},
		{fakegmail.Profile{Zone: "UTC", LooseSeconds: true}, "after:1772368200", []string{late, noon}},
		{fakegmail.Profile{Zone: "UTC", LooseSeconds: true}, "before:1772368200", nil},
		{fakegmail.Profile{Zone: "UTC", LooseSeconds: true}, "before:1772454600", []string{late, noon}}, // a day later
	} {
		if err := box.SetProfile(test.profile); err != nil {
			t.Fatal(err)
		}
		list, err := client(t, url, ann).Messages.List("me").Q(test.q).Do()
		if err != nil || !slices.Equal(ids(list), test.want) {
			t.Errorf("%+v: q=%s lists %v, %v; want %v", test.profile, test.q, list, err, test.want)
		}
	}
	if err := box.SetProfile(fakegmail.Profile{Zone: "Atlantis"}); err == nil {
		t.Error("a zone that is none was taken")
	}
}

func TestListByLabelsSpamAndTrash(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	box.Add(mail(1), "INBOX", "UNREAD")
	box.Add(mail(2), "INBOX")
	box.Add(mail(3), "SPAM", "UNREAD")
	list := func(options func(*gmail.UsersMessagesListCall)) int {
		t.Helper()
		call := client(t, url, ann).Messages.List("me")
		options(call)
		page, err := call.Do()
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Messages)
	}
	if n := list(func(c *gmail.UsersMessagesListCall) { c.LabelIds("INBOX", "UNREAD") }); n != 1 {
		t.Errorf("INBOX and UNREAD list %d, want 1", n)
	}
	if n := list(func(c *gmail.UsersMessagesListCall) { c.LabelIds("UNREAD").IncludeSpamTrash(true) }); n != 2 {
		t.Errorf("UNREAD with spam lists %d, want 2", n)
	}
	if n := list(func(c *gmail.UsersMessagesListCall) { c.LabelIds("SPAM") }); n != 1 {
		t.Errorf("SPAM lists %d, want 1", n)
	}
	if n := list(func(c *gmail.UsersMessagesListCall) { c.LabelIds("STARRED") }); n != 0 {
		t.Errorf("STARRED lists %d, want 0", n)
	}
	profile, err := client(t, url, ann).GetProfile("me").Do()
	if err != nil || profile.MessagesTotal != 3 {
		t.Errorf("profile counts %d, %v; want 3, spam included", profile.MessagesTotal, err)
	}
}

func TestLabels(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	server.AddMailbox(ann).Add(mail(1), "UNREAD", "Projects/Alpha")
	labels, err := client(t, url, ann).Labels.List("me").Do()
	if err != nil || len(labels.Labels) != 15 {
		t.Fatalf("labels = %v, %v; want 14 of the system and one", labels, err)
	}
	if last := labels.Labels[14]; last.Id != "Projects/Alpha" || last.Type != "user" {
		t.Errorf("last label = %+v", last)
	}
	got, err := client(t, url, ann).Labels.Get("me", "Projects/Alpha").Do()
	if err != nil || got.MessagesTotal != 1 || got.MessagesUnread != 1 || got.ThreadsTotal != 1 {
		t.Errorf("label = %+v, %v; want one unread message", got, err)
	}
	_, err = client(t, url, ann).Labels.Get("me", "None").Do()
	wantError(t, err, 404, "Requested entity was not found.", "notFound", "NOT_FOUND")
}

func TestThreads(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	first := box.Add(mail(1))
	reply := box.Add([]byte("References: <0@example.com> <1@example.com>\r\nMessage-ID: <r@example.com>\r\n\r\n"))
	again := box.Add([]byte("In-Reply-To: <r@example.com>\r\n\r\n"))
	for _, id := range []string{first, reply, again} {
		m, err := client(t, url, ann).Messages.Get("me", id).Format("minimal").Do()
		if err != nil || m.ThreadId != first {
			t.Errorf("thread of %s = %v, %v; want %s", id, m, err, first)
		}
	}
}

func TestFieldMasks(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	id := server.AddMailbox(ann).Add(mail(1))
	server.AddMailbox(ann).Add(mail(2))
	users := client(t, url, ann)
	for _, fields := range []string{"messages/id,nextPageToken", "messages(id),nextPageToken", "nextPageToken, messages/id"} {
		list, err := users.Messages.List("me").MaxResults(1).Fields(googleapi.Field(fields)).Do()
		if err != nil || list.NextPageToken == "" || list.Messages[0].Id == "" || list.Messages[0].ThreadId != "" || list.ResultSizeEstimate != 0 {
			t.Errorf("fields=%s gives %+v, %v", fields, list, err)
		}
	}
	m, err := users.Messages.Get("me", id).Fields("id,payload(mimeType,headers/value)").Do()
	if err != nil || m.Id != id || m.SizeEstimate != 0 || m.Payload.MimeType != "text/plain" || m.Payload.Headers[0].Name != "" || m.Payload.Headers[0].Value == "" {
		t.Errorf("masked message = %+v, %v", m, err)
	}
	all, err := users.Messages.Get("me", id).Fields("*").Do()
	if err != nil || all.SizeEstimate == 0 {
		t.Errorf("fields=* gives %+v, %v; want everything", all, err)
	}
	_, err = users.Messages.List("me").Fields("messages/id,nextpagetoken").Do()
	wantError(t, err, 400, "Invalid field selection nextpagetoken", "invalidParameter", "INVALID_ARGUMENT")
	if _, err = users.Messages.List("me").Fields("messages(id").Do(); err == nil {
		t.Error("an open parenthesis was served")
	}
}
