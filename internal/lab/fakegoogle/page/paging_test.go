package page

import (
	"encoding/base64"
	"net/url"
	"slices"
	"testing"
	"time"

	"headroom/internal/lab/fakegoogle/fault"
)

// numbers asks for a page of the numbers from 1 to 5, two at a time.
func numbers(t *testing.T, q Request, tokens *Tokens) (page []int, next string, ok bool) {
	t.Helper()
	params := url.Values{"q": q.Values["q"]}
	p, ok := q.Ask(Question{List: "numbers", Tokens: tokens, Encoding: base64.RawURLEncoding, Params: params, Limit: 2})
	if !ok {
		return nil, "", false
	}
	var places []Place
	for n := int(p.After.Position) + 1; n <= 5 && len(page) < p.Limit; n++ {
		page, places = append(page, n), append(places, Place{Position: int64(n)})
	}
	more := len(places) > 0 && places[len(places)-1].Position < 5
	page, next = Cut(p, page, places, more)
	return page, next, true
}

func ask(token string) Request {
	return Request{Values: url.Values{"q": {"all"}, "pageToken": {token}}}
}

func TestPagesFollowEachOther(t *testing.T) {
	var tokens Tokens
	var got []int
	for token, pages := "", 1; ; pages++ {
		page, next, ok := numbers(t, ask(token), &tokens)
		if !ok {
			t.Fatalf("page %d was refused", pages)
		}
		got = append(got, page...)
		if token = next; token == "" {
			break
		}
	}
	if !slices.Equal(got, []int{1, 2, 3, 4, 5}) {
		t.Errorf("pages = %v, want 1 to 5", got)
	}
}

func TestTokensFitOneQuestion(t *testing.T) {
	var tokens Tokens
	_, next, _ := numbers(t, ask(""), &tokens)
	other := ask(next)
	other.Values.Set("q", "others")
	if _, _, ok := numbers(t, other, &tokens); ok {
		t.Error("a token was taken with another question")
	}
	alone := Request{Values: url.Values{"pageToken": {next}}}.WithFirst(base64.RawURLEncoding)
	if page, _, ok := numbers(t, alone, &tokens); !ok || !slices.Equal(page, []int{3, 4}) {
		t.Errorf("a token alone = %v, %v; want the next page", page, ok)
	}
	tokens.Generation++
	if _, _, ok := numbers(t, ask(next), &tokens); ok {
		t.Error("a token outlived its generation")
	}
}

func TestTokensWearOut(t *testing.T) {
	var tokens Tokens
	_, ageless, _ := numbers(t, ask(""), &tokens)
	tokens.Limit(0, 2)
	_, next, _ := numbers(t, ask(""), &tokens)
	for use := 1; use <= 3; use++ {
		if _, _, ok := numbers(t, ask(next), &tokens); ok != (use <= 2) {
			t.Errorf("use %d of a token that has two: taken %v", use, ok)
		}
	}
	tokens.Limit(time.Hour, 0)
	if _, _, ok := numbers(t, ask(ageless), &tokens); ok {
		t.Error("a token without an age was taken where tokens age")
	}
	_, next, _ = numbers(t, ask(""), &tokens)
	if _, _, ok := numbers(t, ask(next), &tokens); !ok {
		t.Error("a token of an hour was refused at once")
	}
}

func TestQuirksOfPages(t *testing.T) {
	for _, test := range []struct {
		quirk     fault.Quirk
		page      []int
		following []int // that the next token leads to; nil: there is no token
	}{
		{fault.Quirk{}, []int{1, 2}, []int{3, 4}},
		{fault.Quirk{PageItems: 1}, []int{1}, []int{2, 3}},
		{fault.Quirk{Page: fault.PageEmpty}, nil, []int{1, 2}},
		{fault.Quirk{Page: fault.PageTwice}, []int{1, 2, 1}, []int{3, 4}},
		{fault.Quirk{Page: fault.PageOverlap}, []int{1, 2}, []int{2, 3}},
		{fault.Quirk{NextPage: fault.NextFirst}, []int{1, 2}, []int{1, 2}},
		{fault.Quirk{NextPage: fault.NextFresh}, []int{1, 2}, []int{1, 2}},
		{fault.Quirk{NextPage: fault.NextSame}, []int{1, 2}, []int{1, 2}},
		{fault.Quirk{NextPage: fault.NextNone}, []int{1, 2}, nil},
	} {
		var tokens Tokens
		q := ask("")
		q.Quirk = test.quirk
		page, next, ok := numbers(t, q, &tokens)
		if !ok || !slices.Equal(page, test.page) {
			t.Errorf("%+v: page = %v, %v; want %v", test.quirk, page, ok, test.page)
		}
		if next == "" {
			if test.following != nil {
				t.Errorf("%+v: no token, want one", test.quirk)
			}
			continue
		}
		if page, _, ok := numbers(t, ask(next), &tokens); !ok || !slices.Equal(page, test.following) {
			t.Errorf("%+v: the next page = %v, %v; want %v", test.quirk, page, ok, test.following)
		}
	}
	q := ask("")
	q.Quirk.NextPage = fault.NextDead
	var tokens Tokens
	_, next, _ := numbers(t, q, &tokens)
	if _, _, ok := numbers(t, ask(next), &tokens); ok || next == "" {
		t.Errorf("the dead token %q was taken: %v", next, ok)
	}
}
