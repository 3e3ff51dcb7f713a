package google

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// tap runs an answer through a tap, in pieces of at most step bytes.
func tap(answer string, step int) (raw, rest string, err error) {
	var sink bytes.Buffer
	from := io.Reader(strings.NewReader(answer))
	if step == 1 {
		from = iotest.OneByteReader(from)
	}
	passed, err := io.ReadAll(newTap("raw", from, &sink))
	return sink.String(), string(passed), err
}

func TestATapTakesTheMessageAndNothingElse(t *testing.T) {
	corrupt := func(err error) bool { _, ok := errors.AsType[base64.CorruptInputError](err); return ok }
	for _, tt := range []struct {
		name, answer, raw, rest string
		fails                   func(error) bool
	}{
		{"a message between other fields", `{"id":"a","raw":"SGkh","size":3}`, "Hi!", `{"id":"a","raw":"","size":3}`, nil},
		{"spaces and lines", "{\n \"id\" : \"a\",\n \"raw\" : \"SGkh\"\n}\n", "Hi!", "{\n \"id\" : \"a\",\n \"raw\" : \"\"\n}\n", nil},
		{"padding", `{"raw":"SGk="}`, "Hi", `{"raw":""}`, nil},
		{"no padding", `{"raw":"SGk"}`, "Hi", `{"raw":""}`, nil},
		{"escaped padding", `{"raw":"SA\u003d\u003D"}`, "H", `{"raw":""}`, nil},
		{"an escaped name", `{"r\u0061w":"SGkh"}`, "Hi!", `{"r\u0061w":""}`, nil},
		{"the letters beyond the alphabet", `{"raw":"-_-_"}`, "\xfb\xff\xbf", `{"raw":""}`, nil},
		{"an empty message", `{"raw":""}`, "", `{"raw":""}`, nil},
		{"no message", `{"id":"raw"}`, "", `{"id":"raw"}`, nil},
		{"a message that is null", `{"raw":null,"id":"SGkh"}`, "", `{"raw":null,"id":"SGkh"}`, nil},
		{"raw further down", `{"payload":{"raw":"SGkh"},"x":[{"raw":"SGkh"}]}`, "", `{"payload":{"raw":"SGkh"},"x":[{"raw":"SGkh"}]}`, nil},
		{"raw of an object", `{"raw":{"raw":"SGkh"}}`, "", `{"raw":{"raw":"SGkh"}}`, nil},
		{"raw in text", `{"s":"\"raw\":\"SGkh\"","a":["raw","SGkh"]}`, "", `{"s":"\"raw\":\"SGkh\"","a":["raw","SGkh"]}`, nil},
		{"an array", `["raw","SGkh"]`, "", `["raw","SGkh"]`, nil},
		{"no base64", `{"raw":"!!"}`, "", "", corrupt},
		{"line ends in it", `{"raw":"SG\r\nk\u000ah \t\n"}`, "Hi!", `{"raw":""}`, nil},
		{"line ends in its padding", `{"raw":"SA=\n=\n"}`, "H", `{"raw":""}`, nil},
		{"an escaped control character", `{"raw":"SGk\b"}`, "", "", corrupt},
		{"the standard alphabet", `{"raw":"+/+/"}`, "\xfb\xff\xbf", `{"raw":""}`, nil},
		{"the standard alphabet, escaped", `{"raw":"+\/\u002b\u002f"}`, "\xfb\xff\xbf", `{"raw":""}`, nil},
		{"text behind the padding", `{"raw":"SGk=SGkh"}`, "", "", corrupt},
		{"a single letter left", `{"raw":"SGkhS"}`, "", "", corrupt},
		{"an escape beyond ASCII", `{"raw":"\u0141AAA"}`, "", "", corrupt},
		{"two messages", `{"raw":"SGkh","raw":"SGkh"}`, "Hi!", "", func(err error) bool { return errors.Is(err, errTwoRaws) }},
		{"more than any message has beside it", `{"x":"` + strings.Repeat("x", maxRest) + `"}`, "", "", func(err error) bool { return errors.Is(err, errTooLarge) }},
	} {
		for _, step := range []int{0, 1} {
			raw, rest, err := tap(tt.answer, step)
			switch {
			case tt.fails != nil && !tt.fails(err), tt.fails == nil && err != nil:
				t.Errorf("%s: error %v", tt.name, err)
			case tt.fails == nil && (raw != tt.raw || rest != tt.rest):
				t.Errorf("%s: took %q and passed on %q, want %q and %q", tt.name, raw, rest, tt.raw, tt.rest)
			}
		}
	}
}

func TestATapTakesMessagesOfAnyLength(t *testing.T) {
	for n := range 40 {
		message := bytes.Repeat([]byte{0xfb, 0xff, 0xbf}, n)[:n]
		for _, coding := range []*base64.Encoding{base64.URLEncoding, base64.RawURLEncoding} {
			for _, step := range []int{0, 1} {
				raw, _, err := tap(`{"raw":"`+coding.EncodeToString(message)+`"}`, step)
				if err != nil || raw != string(message) {
					t.Errorf("%d bytes became %q, %v", n, raw, err)
				}
			}
		}
	}
}

// FuzzATapAgreesWithTheDecoder compares what a tap makes of an answer with what
// Go's decoder makes of it.
func FuzzATapAgreesWithTheDecoder(f *testing.F) {
	for _, seed := range []string{`{"id":"a","raw":"SGkh"}`, `{"raw":"SA\u003d\u003d","x":[{"raw":"1"},"\\\""]}`, `{"\u0072aw":"SGk"}`, `[{"raw":"a"}]`, `{"raw":{"raw":1}}`} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, answer string, oneByOne bool) {
		var whole map[string]json.RawMessage
		if json.Unmarshal([]byte(answer), &whole) != nil {
			return
		}
		step := 0
		if oneByOne {
			step = 1
		}
		raw, rest, err := tap(answer, step)
		var text string
		isText := json.Unmarshal(whole["raw"], &text) == nil && len(whole["raw"]) > 0 && whole["raw"][0] == '"'
		text = strings.NewReplacer("+", "-", "/", "_", " ", "", "\t", "", "\r", "", "\n", "").Replace(text)
		want, wrong := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
		switch {
		case errors.Is(err, errTwoRaws):
			return
		case isText && (err != nil) != (wrong != nil):
			t.Fatalf("error %v, want %v", err, wrong)
		case !isText && err != nil:
			t.Fatalf("error %v for an answer without a message", err)
		case err != nil:
			return
		case isText && raw != string(want):
			t.Fatalf("took %q, want %q", raw, want)
		}
		var passed map[string]json.RawMessage
		if err := json.Unmarshal([]byte(rest), &passed); err != nil {
			t.Fatalf("passed on %q, which is no JSON any more: %v", rest, err)
		}
		for name, value := range whole {
			if isText && name == "raw" {
				value = json.RawMessage(`""`)
			}
			if !bytes.Equal(passed[name], value) {
				t.Fatalf("field %q is %s, want %s", name, passed[name], value)
			}
		}
	})
}
