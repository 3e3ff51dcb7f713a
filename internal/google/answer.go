package google

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"
	"google.golang.org/api/googleapi"

	"headroom/internal/lenient"
)

// Google's client decodes an answer as a whole, so one field of an unexpected type
// fails the whole answer. This file sends the same requests as that client, and decodes
// the answers item by item and field by field: an unexpected value costs at most its
// item.

// A fieldError reports that an answer is useless because one of its fields cannot be
// read.
type fieldError struct{ problem lenient.Problem }

func (e *fieldError) Error() string { return e.problem.String() }

// get makes a call as Google's client would, and returns the body of the answer. A
// name in braces in path is replaced by the next of ids.
func get(ctx context.Context, client *http.Client, base, path string, ids map[string]string, query url.Values) (io.ReadCloser, error) {
	return send(ctx, client, http.MethodGet, base, path, ids, query, nil)
}

// post is [get] for a call with a body.
func post(ctx context.Context, client *http.Client, base, path string, ids map[string]string, query url.Values, body any) (io.ReadCloser, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return send(ctx, client, http.MethodPost, base, path, ids, query, text)
}

func send(ctx context.Context, client *http.Client, method, base, path string, ids map[string]string, query url.Values, text []byte) (io.ReadCloser, error) {
	query.Set("alt", "json")
	query.Set("prettyPrint", "false")
	request, err := http.NewRequestWithContext(ctx, method, googleapi.ResolveRelative(base, path), bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if method != http.MethodGet {
		request.Header.Set("Content-Type", "application/json")
	}
	request.URL.RawQuery = query.Encode()
	request.Header.Set("User-Agent", userAgent)
	googleapi.Expand(request.URL, ids)
	resp, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if err := googleapi.CheckResponse(resp); err != nil {
		googleapi.CloseBody(resp)
		return nil, err
	}
	return resp.Body, nil
}

// get makes a call of Gmail about the mailbox, and returns the body of the answer.
func (m *Mailbox) get(ctx context.Context, path string, ids map[string]string, query url.Values) ([]byte, error) {
	body, err := get(ctx, m.client, m.service.BasePath, "gmail/v1/users/me/"+path, ids, query)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), err
}

// object makes a call whose answer is one object, and decodes that. An answer is
// useless without the named fields; any other field that cannot be read is logged, and
// left zero.
func (m *Mailbox) object(ctx context.Context, c call, path string, ids map[string]string, query url.Values, to any, needed ...string) (lenient.Problems, error) {
	text, err := m.get(ctx, path, ids, query)
	if err != nil {
		return nil, err
	}
	return m.google.read(c, text, to, needed...)
}

// read decodes an answer, or an item of one.
func (g *Google) read(c call, text []byte, to any, needed ...string) (lenient.Problems, error) {
	problems, err := lenient.Unmarshal(text, to)
	if err != nil {
		return nil, notObject(err)
	}
	for _, field := range needed {
		if p, found := problems.Of(field); found {
			return problems, &fieldError{p}
		}
	}
	g.unreadable(c, problems)
	return problems, nil
}

// notObject returns the error of an answer that is not an object.
func notObject(err error) error {
	if _, syntax := errors.AsType[*json.SyntaxError](err); syntax {
		return err
	}
	return fmt.Errorf("%w: %w", errNoObject, err)
}

// unreadable counts and logs the fields of an answer that could not be read, in one
// line. It logs no values, because they come from strangers.
func (g *Google) unreadable(c call, problems lenient.Problems) {
	if len(problems) == 0 {
		return
	}
	const most = 5
	var texts []string
	for _, p := range problems[:min(most, len(problems))] {
		texts = append(texts, p.String())
	}
	g.metrics.unreadable.WithLabelValues(c.method()).Add(float64(len(problems)))
	g.opts.Log.Warn("fields of an answer cannot be read, and are left out", zap.String("method", c.method()),
		zap.Int("fields", len(problems)), zap.String("which", strings.Join(texts, "; ")))
}

// An answerPage has the fields that pages of all lists share. Its items are not
// decoded.
type answerPage struct {
	items         []json.RawMessage
	list          string // the field that holds them
	nextPageToken string
	nextSyncToken string
	historyID     uint64
	updated       time.Time
}

// A rawList is a list whose items are not decoded. It records what stood there instead
// of a list.
type rawList struct {
	items []json.RawMessage
	other json.RawMessage
}

// UnmarshalJSON implements [json.Unmarshaler].
func (l *rawList) UnmarshalJSON(text []byte) error {
	if bytes.Equal(text, []byte("null")) {
		return nil
	}
	if text[0] != '[' {
		l.other = bytes.Clone(text)
		return nil
	}
	return json.Unmarshal(text, &l.items)
}

// readPage decodes a page. It returns an error if the page is not JSON, or if the list
// or a token of the next page cannot be read: the rest of the list would otherwise be
// taken to be empty.
func readPage(body io.Reader) (page answerPage, err error) {
	var fields *struct { // nil: the page is null
		Items    rawList `json:"items"`
		Messages rawList `json:"messages"`
		History  rawList `json:"history"`
		Labels   rawList `json:"labels"`

		NextPageToken json.RawMessage `json:"nextPageToken"`
		NextSyncToken json.RawMessage `json:"nextSyncToken"`
		HistoryID     json.RawMessage `json:"historyId"`
		Updated       json.RawMessage `json:"updated"`
	}
	if err := json.NewDecoder(body).Decode(&fields); err != nil {
		if _, kind := errors.AsType[*json.UnmarshalTypeError](err); kind {
			return page, errNoObject
		}
		return page, err
	}
	if fields == nil {
		return page, errNoObject
	}
	for name, list := range map[string]rawList{"items": fields.Items, "messages": fields.Messages, "history": fields.History, "labels": fields.Labels} {
		if list.other != nil {
			return page, &fieldError{lenient.Problem{Field: name, Found: "no list"}}
		}
		if list.items != nil {
			page.items, page.list = list.items, name
		}
	}
	for _, field := range []struct {
		name string
		text json.RawMessage
		to   any
	}{
		{"nextPageToken", fields.NextPageToken, &page.nextPageToken},
		{"nextSyncToken", fields.NextSyncToken, &page.nextSyncToken},
		{"historyId", fields.HistoryID, &page.historyID},
	} {
		if len(field.text) == 0 {
			continue
		}
		if _, err := lenient.Unmarshal(field.text, field.to); err != nil && !errors.Is(err, lenient.ErrNull) {
			return page, &fieldError{lenient.Problem{Field: field.name, Found: "of another kind"}}
		}
	}
	page.historyID = possible(page.historyID)
	var updated string
	if _, err := lenient.Unmarshal(fields.Updated, &updated); err == nil {
		page.updated = momentOf(updated)
	}
	return page, nil
}

// momentOf reads a time. It returns the zero time for one that is missing or invalid.
func momentOf(text string) time.Time {
	t, _ := time.Parse(time.RFC3339, text)
	return t
}

// itemsOf decodes the items of a page. It leaves out and logs those that cannot be
// read.
func itemsOf[T any](g *Google, c call, page answerPage, read func(json.RawMessage) (T, lenient.Problems, error)) []T {
	all := make([]T, 0, len(page.items))
	var problems lenient.Problems
	for i, text := range page.items {
		item, odd, err := read(text)
		at := fmt.Sprintf("%s[%d]", page.list, i)
		for _, p := range odd {
			problems = append(problems, lenient.Problem{Field: at + "." + p.Field, Found: p.Found})
		}
		_, field := errors.AsType[*fieldError](err)
		switch {
		case field: // it is reported with the other fields
		case errors.Is(err, lenient.ErrNull):
			problems = append(problems, lenient.Problem{Field: at, Found: "null"})
		case errors.Is(err, errNoItemID), errors.Is(err, errNoMessage):
			problems = append(problems, lenient.Problem{Field: at, Found: "without an id"})
		case err != nil:
			problems = append(problems, lenient.Problem{Field: at, Found: "no object"})
		default:
			all = append(all, item)
		}
	}
	g.unreadable(c, problems)
	return all
}

// page makes a call of Gmail whose answer is a page of a list.
func (m *Mailbox) page(ctx context.Context, path string, query url.Values) (answerPage, error) {
	body, err := get(ctx, m.client, m.service.BasePath, "gmail/v1/users/me/"+path, nil, query)
	if err != nil {
		return answerPage{}, err
	}
	defer body.Close()
	return readPage(body)
}
