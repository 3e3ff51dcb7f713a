package fakegoogle_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"google.golang.org/api/gmail/v1"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/fault"
	fakegmail "headroom/internal/lab/fakegoogle/gmail"
)

const messagesList = "gmail.users.messages.list"

// quirky puts a quirk in force for the n-th listing and so many after it.
func quirky(t *testing.T, server *fakegoogle.Server, from, count int, odd fault.Quirk) {
	t.Helper()
	addFault(t, server, fault.Fault{Method: messagesList, From: from, Count: count, Quirk: odd})
}

// crawl lists up to so many pages of 10, and returns how many items each had,
// the ids in their order, and the tokens.
func crawl(t *testing.T, users *gmail.UsersService, pages int) (sizes []int, all, tokens []string) {
	t.Helper()
	token := ""
	for range pages {
		list, err := users.Messages.List("me").MaxResults(10).PageToken(token).Do()
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(list.Messages))
		all = append(all, ids(list)...)
		if token = list.NextPageToken; token == "" {
			break
		}
		tokens = append(tokens, token)
	}
	return sizes, all, tokens
}

func TestOddPagesLoseNothing(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	for i := range 25 {
		box.Add(mail(i))
	}
	users := client(t, url, ann)
	_, want, _ := crawl(t, users, 10)
	for _, test := range []struct {
		name        string
		from, count int
		odd         fault.Quirk
		sizes       string
	}{
		{"an empty page first", 1, 1, fault.Quirk{Page: fault.PageEmpty}, "[0 10 10 5]"},
		{"empty pages between", 2, 2, fault.Quirk{Page: fault.PageEmpty}, "[10 0 0 10 5]"},
		{"an empty page last", 3, 1, fault.Quirk{Page: fault.PageEmpty}, "[10 10 0 5]"},
		{"only a token", 2, 1, fault.Quirk{Page: fault.PageBare}, "[10 0 10 5]"},
		{"short pages", 1, 2, fault.Quirk{PageItems: 2}, "[2 2 10 10 1]"},
		{"an id twice", 2, 1, fault.Quirk{Page: fault.PageTwice}, "[10 11 5]"},
		{"pages that overlap", 1, 0, fault.Quirk{Page: fault.PageOverlap}, "[10 10 7]"},
	} {
		server.ClearFaults()
		quirky(t, server, test.from, test.count, test.odd)
		sizes, got, tokens := crawl(t, users, 10)
		if fmt.Sprint(sizes) != test.sizes {
			t.Errorf("%s: pages of %v, want %s", test.name, sizes, test.sizes)
		}
		slices.Sort(tokens)
		if len(slices.Compact(tokens)) != len(tokens) {
			t.Errorf("%s: a token came twice", test.name)
		}
		slices.Sort(got)
		sorted := slices.Sorted(slices.Values(want))
		if !slices.Equal(slices.Compact(got), sorted) {
			t.Errorf("%s: %d ids, want the 25 there are", test.name, len(got))
		}
	}
}

func TestOddPageTokens(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	for i := range 25 {
		box.Add(mail(i))
	}
	users := client(t, url, ann)
	_, _, truth := crawl(t, users, 10)
	for _, test := range []struct {
		name, next string
		from       int
		sizes      string // of 7 pages at most
		different  int    // tokens
	}{
		{"the first page again and again", fault.NextSame, 1, "[10 10 10 10 10 10 10]", 1},
		{"the last page again and again", fault.NextSame, 3, "[10 10 5 5 5 5 5]", 2},
		{"a cycle", fault.NextFirst, 3, "[10 10 5 10 10 10 10]", 3},
		{"no end, and no token twice", fault.NextFresh, 1, "[10 10 10 10 10 10 10]", 7},
		{"an end too early", fault.NextNone, 2, "[10 10]", 1},
	} {
		server.ClearFaults()
		quirky(t, server, test.from, 0, fault.Quirk{NextPage: test.next})
		sizes, _, tokens := crawl(t, users, 7)
		slices.Sort(tokens)
		if different := len(slices.Compact(tokens)); fmt.Sprint(sizes) != test.sizes || different != test.different {
			t.Errorf("%s: pages of %v with %d tokens, want %s with %d", test.name, sizes, different, test.sizes, test.different)
		}
	}
	server.ClearFaults()
	quirky(t, server, 3, 1, fault.Quirk{NextPage: fault.NextFirst})
	sizes, _, tokens := crawl(t, users, 10)
	if fmt.Sprint(sizes) != "[10 10 5 10 10 5]" || tokens[0] != tokens[3] || tokens[0] != truth[0] {
		t.Errorf("one cycle: pages of %v, tokens %v", sizes, tokens)
	}
	server.ClearFaults()
	quirky(t, server, 1, 1, fault.Quirk{NextPage: fault.NextDead})
	list, err := users.Messages.List("me").Do()
	if err != nil || list.NextPageToken == "" {
		t.Fatalf("list = %v, %v", list, err)
	}
	_, err = users.Messages.List("me").PageToken(list.NextPageToken).Do()
	wantError(t, err, 400, "Invalid pageToken", "invalidArgument", "INVALID_ARGUMENT")
}

func TestPageTokensDie(t *testing.T) {
	server, url := start(t, fakegoogle.Options{UserLimit: 1_000_000}) // asks until one dies
	box := server.AddMailbox(ann)
	for i := range 25 {
		box.Add(mail(i))
	}
	users := client(t, url, ann)
	list := func(token string) (*gmail.ListMessagesResponse, error) {
		return users.Messages.List("me").MaxResults(10).PageToken(token).Do()
	}
	dead := func(err error) {
		t.Helper()
		wantError(t, err, 400, "Invalid pageToken", "invalidArgument", "INVALID_ARGUMENT")
	}
	if err := box.SetProfile(fakegmail.Profile{PageTokenUses: 2}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a crawl anew has tokens of its own
		page, err := list("")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if next, err := list(page.NextPageToken); err != nil || len(next.Messages) != 10 {
				t.Fatalf("page = %v, %v; want two uses", next, err)
			}
		}
		_, err = list(page.NextPageToken)
		dead(err)
	}
	if err := box.SetProfile(fakegmail.Profile{PageTokenLifeMS: 100}); err != nil {
		t.Fatal(err)
	}
	page, err := list("")
	if err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); ; {
		_, err := list(page.NextPageToken)
		if err != nil && time.Since(begun) >= 100*time.Millisecond {
			dead(err)
			break
		}
		if time.Since(begun) > 10*time.Second {
			t.Fatal("a token of 100 ms lives after 10 s")
		}
	}
	if err := box.SetProfile(fakegmail.Profile{PageTokenUses: -1}); err == nil {
		t.Error("a negative number of uses was taken")
	}
}

func TestCountsThatLie(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	server.AddMailbox(ann).Add(mail(1))
	addFault(t, server, fault.Fault{Quirk: fault.Quirk{Estimate: new(201), MessagesTotal: new(0)}})
	users := client(t, url, ann)
	list, err := users.Messages.List("me").Do()
	if err != nil || list.ResultSizeEstimate != 201 || len(list.Messages) != 1 {
		t.Errorf("list = %+v, %v; want one message and an estimate of 201", list, err)
	}
	threads, err := users.Threads.List("me").Do()
	if err != nil || threads.ResultSizeEstimate != 201 || len(threads.Threads) != 1 {
		t.Errorf("threads = %+v, %v; want one and an estimate of 201", threads, err)
	}
	profile, err := users.GetProfile("me").Do()
	if err != nil || profile.MessagesTotal != 0 || profile.ThreadsTotal != 1 {
		t.Errorf("profile = %+v, %v; want no message", profile, err)
	}
	label, err := users.Labels.Get("me", "INBOX").Do()
	if err != nil || label.MessagesTotal != 0 || label.ThreadsTotal != 1 {
		t.Errorf("label = %+v, %v; want no message", label, err)
	}
	server.ClearFaults()
	quirky(t, server, 0, 0, fault.Quirk{Page: fault.PageBare})
	bare := do(t, "GET", url+"/gmail/v1/users/me/messages", "", 200)
	if got := decode[map[string]any](t, bare); len(got) != 1 || got["nextPageToken"] == "" {
		t.Errorf("bare page = %s, want a token alone", bare)
	}
}

func TestHistoryInShortPages(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	cursor := box.HistoryID()
	gone := box.Churn(4)
	addFault(t, server, fault.Fault{Method: "gmail.users.history.list", Quirk: fault.Quirk{PageItems: 3}})
	var sizes []int
	var lines []string
	err := client(t, url, ann).History.List("me").StartHistoryId(cursor).Pages(t.Context(), func(p *gmail.ListHistoryResponse) error {
		sizes = append(sizes, len(p.History))
		lines = append(lines, changes(p.History)...)
		return nil
	})
	if err != nil || fmt.Sprint(sizes) != "[3 3 2]" || lines[2] != "added "+gone[1]+" [INBOX UNREAD]" || lines[3] != "deleted "+gone[1] {
		t.Errorf("pages of %v, %q, %v; want a message that comes on one page and goes on the next", sizes, lines, err)
	}
	if n := len(box.Messages()); n != 0 {
		t.Errorf("%d messages stayed", n)
	}
}

func TestBodiesOfWrongLength(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	box := server.AddMailbox(ann)
	small, large := box.Add(mail(1)), box.AddLarge(50_000)
	for _, id := range []string{small, large} {
		server.ClearFaults()
		addFault(t, server, fault.Fault{Quirk: fault.Quirk{LengthOff: 10}})
		if _, err := client(t, url, ann).Messages.Get("me", id).Format("raw").Do(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("ten bytes too many promised: %v, want an unexpected end", err)
		}
		server.ClearFaults()
		addFault(t, server, fault.Fault{Quirk: fault.Quirk{LengthOff: -10}})
		if m, err := client(t, url, ann).Messages.Get("me", id).Format("raw").Do(); err == nil {
			t.Errorf("ten bytes too few promised: %v, want an error", m.Id)
		}
	}
	server.ClearFaults()
	addFault(t, server, fault.Fault{Truncate: true})
	if _, err := client(t, url, ann).Messages.Get("me", large).Format("raw").Do(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("half of a large message: %v, want an unexpected end", err)
	}
	if r := server.Meter(); r.User(ann).Fetches != 0 || r.Faulted != 5 {
		t.Errorf("%d counted as delivered, %d faulted; want none and 5", r.User(ann).Fetches, r.Faulted)
	}
}

func TestSlowBodies(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	id := server.AddMailbox(ann).Add(mail(1))
	addFault(t, server, fault.Fault{Quirk: fault.Quirk{BytesPerSecond: 400}})
	begun := time.Now()
	m, err := client(t, url, ann).Messages.Get("me", id).Format("minimal").Do()
	if err != nil || m.Id != id {
		t.Errorf("message = %v, %v; want all of it in the end", m, err)
	}
	if took := time.Since(begun); took < 200*time.Millisecond {
		t.Errorf("over 100 bytes at 400 a second took %v", took)
	}
	// A client that loses patience ends it.
	server.ClearFaults()
	addFault(t, server, fault.Fault{Quirk: fault.Quirk{BytesPerSecond: 1}})
	r := httpClient(t, "")
	r.Timeout = 50 * time.Millisecond
	resp, err := r.Get(url + "/gmail/v1/users/me/messages/" + id)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	if !os.IsTimeout(err) {
		t.Errorf("a byte a second: %v, want the client's timeout", err)
	}
}

func TestQuirksByHTTP(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	server.AddMailbox(ann)
	post(t, url+"/_fake/faults", `{"method":"gmail.users.messages.list","page":"empty","next_page":"fresh","estimate":201}`, 200)
	want := fault.Quirk{Page: "empty", NextPage: "fresh", Estimate: new(201)}
	a, _ := json.Marshal(server.Faults()[0].Quirk)
	if b, _ := json.Marshal(want); string(a) != string(b) {
		t.Errorf("quirk = %s, want %s", a, b)
	}
	for _, bad := range []string{
		`{"page":"purple"}`, `{"next_page":"purple"}`, `{"page_items":-1}`, `{"estimate":-1}`,
		`{"page":"empty","status":500}`, `{"page":"empty","truncate":true}`, `{"method":"token","page":"empty"}`,
	} {
		post(t, url+"/_fake/faults", bad, 400)
	}
}
