package fakegoogle_test

import (
	"fmt"
	"testing"

	"google.golang.org/api/gmail/v1"

	"headroom/internal/lab/fakegoogle"
)

// changes renders history records one a line.
func changes(records []*gmail.History) []string {
	var lines []string
	for _, h := range records {
		switch {
		case h.MessagesAdded != nil:
			lines = append(lines, fmt.Sprint("added ", h.MessagesAdded[0].Message.Id, " ", h.MessagesAdded[0].Message.LabelIds))
		case h.MessagesDeleted != nil:
			lines = append(lines, fmt.Sprint("deleted ", h.MessagesDeleted[0].Message.Id))
		case h.LabelsAdded != nil:
			lines = append(lines, fmt.Sprint("labelled ", h.LabelsAdded[0].Message.Id, " ", h.LabelsAdded[0].LabelIds, " ", h.LabelsAdded[0].Message.LabelIds))
		case h.LabelsRemoved != nil:
			lines = append(lines, fmt.Sprint("unlabelled ", h.LabelsRemoved[0].Message.Id, " ", h.LabelsRemoved[0].LabelIds, " ", h.LabelsRemoved[0].Message.LabelIds))
		}
	}
	return lines
}

func TestHistoryTellsEveryChangeInOrder(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	old := box.Add(mail(1))
	users := client(t, url, ann)
	profile, err := users.GetProfile("me").Do()
	if err != nil {
		t.Fatal(err)
	}
	cursor := profile.HistoryId

	none, err := users.History.List("me").StartHistoryId(cursor).Do()
	if err != nil || none.History != nil || none.HistoryId != cursor {
		t.Fatalf("history of nothing = %+v, %v; want none and id %d", none, err, cursor)
	}
	added := box.Add(mail(2), "UNREAD")
	box.Relabel(old, []string{"STARRED", "INBOX"}, []string{"UNREAD"})
	box.Relabel(old, nil, []string{"INBOX"})
	box.Delete(added)

	got, err := users.History.List("me").StartHistoryId(cursor).Do()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint([]string{
		"added " + added + " [UNREAD]",
		"labelled " + old + " [STARRED] [INBOX STARRED]",
		"unlabelled " + old + " [INBOX] [STARRED]",
		"deleted " + added,
	})
	if fmt.Sprint(changes(got.History)) != want {
		t.Errorf("history = %v\nwant %v", changes(got.History), want)
	}
	last := cursor
	for _, h := range got.History {
		if h.Id <= last || len(h.Messages) != 1 || h.Messages[0].LabelIds != nil {
			t.Errorf("record %+v after %d: ids must rise, messages be bare", h, last)
		}
		last = h.Id
	}
	if got.HistoryId != last {
		t.Errorf("next cursor = %d, want %d", got.HistoryId, last)
	}
	m, err := users.Messages.Get("me", old).Format("minimal").Do()
	if err != nil || m.HistoryId != got.History[2].Id {
		t.Errorf("historyId of the message = %v, %v; want that of its last change", m, err)
	}
}

func TestHistoryFiltersAndPages(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	cursor := box.HistoryID()
	for i := range 12 {
		id := box.Add(mail(i))
		box.Relabel(id, []string{"STARRED"}, nil)
	}
	users := client(t, url, ann)
	list := func() *gmail.UsersHistoryListCall { return users.History.List("me").StartHistoryId(cursor) }

	var all, pages int
	err := list().MaxResults(5).Pages(t.Context(), func(p *gmail.ListHistoryResponse) error {
		all, pages = all+len(p.History), pages+1
		return nil
	})
	if err != nil || all != 24 || pages != 5 {
		t.Errorf("%d records on %d pages, %v; want 24 on 5", all, pages, err)
	}
	if got, err := list().HistoryTypes("labelAdded").Do(); err != nil || len(got.History) != 12 {
		t.Errorf("labelAdded gives %v, %v; want 12", got, err)
	}
	if got, err := list().HistoryTypes("messageAdded", "messageDeleted").LabelId("STARRED").Do(); err != nil || len(got.History) != 0 {
		t.Errorf("messages added with STARRED = %v, %v; want none, they got it later", got, err)
	}
	page, err := list().MaxResults(5).Do()
	if err != nil {
		t.Fatal(err)
	}
	_, err = list().HistoryTypes("labelAdded").PageToken(page.NextPageToken).Do()
	wantError(t, err, 400, "Invalid pageToken", "invalidArgument", "INVALID_ARGUMENT")
	if _, err := list().HistoryTypes("messageEaten").Do(); err == nil {
		t.Error("an unknown history type was served")
	}
}

func TestHistoryTooOld(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	cursor := box.HistoryID()
	box.Add(mail(1))
	box.ExpireHistory()
	users := client(t, url, ann)
	for _, id := range []uint64{1, cursor, box.HistoryID() + 1} {
		_, err := users.History.List("me").StartHistoryId(id).Do()
		wantError(t, err, 404, "Requested entity was not found.", "notFound", "NOT_FOUND")
	}
	if got, err := users.History.List("me").StartHistoryId(box.HistoryID()).Do(); err != nil || got.History != nil {
		t.Errorf("history from now = %+v, %v; want none", got, err)
	}
	_, err := users.History.List("me").Do()
	wantError(t, err, 400, "Missing/invalid parameter: startHistoryId", "invalidArgument", "INVALID_ARGUMENT")
}
