package fakegoogle_test

import (
	"fmt"
	"slices"
	"testing"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/gmail"
)

func TestChangesMakeHistory(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	first, second := box.Add(mail(1), "INBOX", "UNREAD"), box.Add(mail(2))
	draft := box.Add([]byte("Subject: draft\r\nIn-Reply-To: <1@example.com>\r\n\r\none"), "DRAFT")
	cursor := box.HistoryID()
	box.Trash(first)
	box.Untrash(first)
	box.Spam(second)
	edited, ok := box.EditDraft(draft, []byte("Subject: draft\r\n\r\ntwo"))
	if !ok || edited == draft {
		t.Fatalf("EditDraft = %q, %t; want another id", edited, ok)
	}
	got, err := client(t, url, ann).History.List("me").StartHistoryId(cursor).Do()
	want := []string{
		"labelled " + first + " [TRASH] [INBOX TRASH UNREAD]",
		"unlabelled " + first + " [INBOX] [TRASH UNREAD]",
		"unlabelled " + first + " [TRASH] [UNREAD]",
		"labelled " + second + " [SPAM] [INBOX SPAM]",
		"unlabelled " + second + " [INBOX] [SPAM]",
		"deleted " + draft,
		"added " + edited + " [DRAFT]",
	}
	if err != nil || !slices.Equal(changes(got.History), want) {
		t.Errorf("history = %q, %v\nwant %q", changes(got.History), err, want)
	}
	m, err := client(t, url, ann).Messages.Get("me", edited).Format("raw").Do()
	if err != nil || m.ThreadId != first || string(raw(t, m)) != "Subject: draft\r\n\r\ntwo" {
		t.Errorf("draft = %+v, %v; want the new text in the old thread", m, err)
	}
	_, err = client(t, url, ann).Messages.Get("me", draft).Do()
	wantError(t, err, 404, "Requested entity was not found.", "notFound", "NOT_FOUND")
	for _, missing := range []bool{box.Trash("1"), box.Untrash("1"), box.Spam("1")} {
		if missing {
			t.Error("a message that is not there was moved")
		}
	}
	if _, ok := box.EditDraft(draft, nil); ok {
		t.Error("a draft was edited that has gone")
	}
}

func TestChangesByHTTP(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	first, draft := box.Add(mail(1)), box.Add(mail(2), "DRAFT")
	before := box.HistoryID()
	done := decode[gmail.MailboxChanged](t, post(t, url+"/_fake/mailbox", `{"user":"ann@example.com",
		"habits":{"page_token_uses":1,"zone":"UTC"},
		"add":[{"size":3000,"labels":["SPAM"]}], "churn":2,
		"trash":["`+first+`","19ffffffffffffff"], "edit_draft":[{"id":"`+draft+`","raw":"Subject: x\r\n\r\ny"}],
		"expire_attachment_ids":true}`, 200))
	if len(done.Added) != 1 || len(done.Edited) != 1 || fmt.Sprint(done.Missing) != "[19ffffffffffffff]" || done.HistoryID <= before {
		t.Fatalf("changed = %+v", done)
	}
	got := map[string]string{}
	for _, m := range box.Messages() {
		got[m.ID] = fmt.Sprint(m.Size, m.Labels)
	}
	want := map[string]string{
		first:          fmt.Sprint(len(mail(1)), " [TRASH]"),
		done.Added[0]:  "3000 [SPAM]",
		done.Edited[0]: "15 [DRAFT]",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("mailbox = %v, want %v", got, want)
	}
	for _, bad := range []string{
		`{"add":[{"size":10}]}`, `{"add":[{"size":3000,"raw":"x"}]}`, `{"add":[{"size":2000000000}]}`,
		`{"churn":-1}`, `{"habits":{"zone":"Atlantis"}}`, `{"habits":{"page_token_uses":-1}}`,
	} {
		post(t, url+"/_fake/mailbox", bad, 400)
	}
}

func TestADeletedLabelIsRefused(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	id := box.Add(mail(1), "INBOX", "Label_7")
	cursor := box.HistoryID()
	done := decode[gmail.MailboxChanged](t, post(t, url+"/_fake/mailbox", `{"user":"ann@example.com","delete_label":["Label_7","Label_8","INBOX"]}`, 200))
	if !slices.Equal(done.Missing, []string{"Label_8", "INBOX"}) {
		t.Errorf("missing = %q, want the label that is none and the system's", done.Missing)
	}
	got, err := client(t, url, ann).History.List("me").StartHistoryId(cursor).Do()
	if want := []string{"unlabelled " + id + " [Label_7] [INBOX]"}; err != nil || !slices.Equal(changes(got.History), want) {
		t.Errorf("history = %q, %v, want %q", changes(got.History), err, want)
	}
	_, err = client(t, url, ann).Messages.List("me").LabelIds("Label_7").Do()
	wantError(t, err, 400, "Invalid label: Label_7", "invalidArgument", "INVALID_ARGUMENT")
	box.Relabel(id, []string{"Label_7"}, nil) // made again under its id
	if list, err := client(t, url, ann).Messages.List("me").LabelIds("Label_7").Do(); err != nil || len(list.Messages) != 1 {
		t.Errorf("a listing by the label that is there again = %+v, %v", list, err)
	}
}

func TestAMailboxMadeAnewBeginsItsHistoryAnew(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	old := box.Add(mail(1))
	cursor := box.HistoryID()
	done := decode[gmail.MailboxChanged](t, post(t, url+"/_fake/mailbox", `{"user":"ann@example.com","make_anew":true,"add":[{"raw":"Subject: x\r\n\r\ny"}]}`, 200))
	if len(done.Added) != 1 || done.Added[0] == old || done.HistoryID >= cursor {
		t.Errorf("made anew = %+v, want a new id and a history below %d", done, cursor)
	}
	if all := box.Messages(); len(all) != 1 || all[0].ID != done.Added[0] {
		t.Errorf("messages = %+v, want the new one", all)
	}
	_, err := client(t, url, ann).History.List("me").StartHistoryId(cursor).Do()
	wantError(t, err, 404, "Requested entity was not found.", "notFound", "NOT_FOUND")
}
