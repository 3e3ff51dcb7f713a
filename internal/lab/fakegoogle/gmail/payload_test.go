package gmail

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"headroom/internal/lab/fakegoogle/wire"
)

// outline renders a tree of parts, one a line: id, type, file name, size and
// either the text or whether there is an attachment id.
func outline(p *payload) string {
	data, _ := base64.URLEncoding.DecodeString(p.Body.Data)
	lines := []string{strings.TrimRight(fmt.Sprintf("%q %s %q %d %q %t", *p.PartID, p.MimeType, *p.Filename, p.Body.Size, data, p.Body.AttachmentID != ""), " ")}
	for _, child := range p.Parts {
		lines = append(lines, outline(child))
	}
	return strings.Join(lines, "\n")
}

func TestPayloadTree(t *testing.T) {
	raw := strings.ReplaceAll(`Content-Type: multipart/mixed; boundary="outer"

preamble
--outer
Content-Type: multipart/alternative; boundary=inner

--inner
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

gr=FC=DFe
--inner
Content-Type: text/html; charset=utf-8
Content-Transfer-Encoding: base64

PHA+eDwv
cD4=
--inner--
--outer
Content-Type: application/pdf; name="=?utf-8?q?=C3=BCber.pdf?="
Content-Disposition: attachment
Content-Transfer-Encoding: base64

AAEC
--outer
Content-Type: image/png

png
--outer
Content-Type: text/plain
Content-Disposition: attachment; filename=notes.txt

notes
--outer
Content-Type: message/rfc822

Subject: within

inner
--outer--
epilogue
`, "\n", "\r\n")
	want := `"" multipart/mixed "" 0 "" false
"0" multipart/alternative "" 0 "" false
"0.0" text/plain "" 7 "grüße" false
"0.1" text/html "" 8 "<p>x</p>" false
"1" application/pdf "über.pdf" 3 "" true
"2" image/png "" 3 "" true
"3" text/plain "notes.txt" 5 "" true
"4" message/rfc822 "" 24 "" true
"4.0" text/plain "" 5 "inner" false`
	if got := outline(fullPayload("1", []byte(raw))); got != want {
		t.Errorf("tree:\n%s\nwant:\n%s", got, want)
	}
}

func TestBrokenMailHasATree(t *testing.T) {
	for raw, want := range map[string]string{
		"": `"" text/plain "" 0 "" false`,
		"Content-Type: multipart/mixed; boundary=b\n\nno boundary": `"" multipart/mixed "" 0 "" false`,
		"Content-Type: multipart/mixed\n\nno parameter":            `"" multipart/mixed "" 12 "no parameter" false`,
		"Content-Type: multipart/mixed; boundary=b\n\n--b\n\nopen": "\"\" multipart/mixed \"\" 0 \"\" false\n\"0\" text/plain \"\" 4 \"open\" false",
		"Content-Type: junk\n\nx":                                  `"" text/plain "" 1 "x" false`,
		"Content-Transfer-Encoding: base64\n\nYW*Jj!ZA=":           `"" text/plain "" 4 "abcd" false`,
	} {
		if got := outline(fullPayload("1", []byte(raw))); got != want {
			t.Errorf("%q:\n%s\nwant:\n%s", raw, got, want)
		}
	}
}

func TestUuencodedPartsAreDecoded(t *testing.T) {
	const data = "begin 644 cat.txt\n#0V%T\n`\nend\n"
	for raw, want := range map[string]string{
		data: "Cat",
		"a word before\r\nbegin 0644 a b.txt\r\n#0V%T\r\n \r\nend\r\nafter": "Cat",
		// 45 bytes a line; a space at a line's end may be lost.
		"begin 644 x\nM" + strings.Repeat("86%A", 15) + "\n\"86$\n`\nend\n": strings.Repeat("aaa", 15) + "aa",
		"begin 644 x\n#\n": "\x00\x00\x00",
		"no beginning\n":   "no beginning\n",
		"begin 644 x\n":    "",
	} {
		for _, encoding := range []string{"x-uuencode", "X-UUENCODE ", "x-uue", "uuencode"} {
			if got := decodeTransfer([]byte(raw), encoding); string(got) != want {
				t.Errorf("%q by %s = %q, want %q", raw, encoding, got, want)
			}
		}
	}
	got := outline(fullPayload("1", []byte("Content-Type: text/plain\nContent-Transfer-Encoding: x-uuencode\nContent-Disposition: attachment; filename=cat.txt\n\n"+data)))
	if want := `"" text/plain "cat.txt" 3 "" true`; got != want {
		t.Errorf("an attachment is %s, want %s", got, want)
	}
}

func FuzzPayload(f *testing.F) {
	f.Add([]byte("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nx\r\n--b--\r\n"))
	f.Add([]byte("Subject: =?utf-8?q?=?=\n folded\n\n"))
	f.Add([]byte("Content-Type: message/rfc822\n\nContent-Type: message/rfc822\n\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p := fullPayload("1", raw)
		if _, err := wire.EncodeJSON(p); err != nil {
			t.Errorf("%q: %v", raw, err)
		}
		snippetOf(p)
	})
}
