package gmail

import (
	"encoding/base64"
	"fmt"
	"iter"
	"math/rand/v2"
	"mime"
	"mime/quotedprintable"
	"strings"
	"time"
)

// Generate yields n raw messages such as a mailbox holds: plain text,
// alternatives in HTML, attachments, subjects beyond ASCII, replies; mostly 2 to
// 8 KB, from 1 to 60 KB, with CRLF line ends. The same seed and place give the
// same message, however many are asked for.
func Generate(seed uint64, n int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := range n {
			if !yield(generateMessage(seed, i)) {
				return
			}
		}
	}
}

// firstGenerated is when the first message was sent; the others follow in steps
// of some forty minutes.
var firstGenerated = time.Date(2025, time.January, 6, 8, 0, 0, 0, time.UTC)

const generatedEvery = 41 * time.Minute

func generateMessage(seed uint64, i int) []byte {
	g := &generator{rand: rand.New(rand.NewPCG(seed, uint64(i)))}
	size := g.size()

	date := firstGenerated.Add(time.Duration(i)*generatedEvery + time.Duration(g.rand.IntN(2400))*time.Second)
	g.field("Date", date.Format(time.RFC1123Z))
	g.field("From", g.person())
	g.field("To", g.person())
	if g.rand.IntN(4) == 0 {
		g.field("Cc", g.person()+", "+g.person())
	}
	subject := g.pick(subjects)
	if i > 0 && g.rand.IntN(3) == 0 {
		parent := generatedID(seed, i-1-g.rand.IntN(min(i, 20)))
		g.field("In-Reply-To", parent)
		g.field("References", parent)
		subject = "Re: " + subject
	}
	g.field("Subject", mime.QEncoding.Encode("utf-8", subject))
	g.field("Message-ID", generatedID(seed, i))
	g.field("MIME-Version", "1.0")

	switch kind := g.rand.IntN(10); {
	case kind < 4:
		g.text("plain", "", size)
	case kind < 8:
		g.alternative(size)
	default:
		g.attachment(size)
	}
	return []byte(g.out.String())
}

func generatedID(seed uint64, i int) string {
	return fmt.Sprintf("<%x.%d@mail.example.com>", seed, i)
}

// A generator writes one message.
type generator struct {
	rand *rand.Rand
	out  strings.Builder
}

// size draws how large the message shall be, in bytes, roughly.
func (g *generator) size() int {
	between := func(low, high int) int { return low + g.rand.IntN(high-low) }
	switch draw := g.rand.IntN(100); {
	case draw < 12:
		return between(1_000, 2_000)
	case draw < 82:
		return between(2_000, 8_000)
	case draw < 96:
		return between(8_000, 25_000)
	default:
		return between(25_000, 55_000)
	}
}

func (g *generator) field(name, value string) { g.line(name + ": " + value) }

func (g *generator) line(s string) { g.out.WriteString(s + "\r\n") }

func (g *generator) pick(list []string) string { return list[g.rand.IntN(len(list))] }

func (g *generator) person() string {
	name := g.pick(names)
	return fmt.Sprintf("%s <%s@example.%s>", mime.QEncoding.Encode("utf-8", name),
		strings.ToLower(strings.NewReplacer("é", "e", "ö", "o", "ł", "l").Replace(name)), g.pick([]string{"com", "org", "net"}))
}

// prose returns some size bytes of sentences, a paragraph a line.
func (g *generator) prose(size int) string {
	var b strings.Builder
	for b.Len() < size {
		for range 2 + g.rand.IntN(5) {
			words := make([]string, 5+g.rand.IntN(12))
			for i := range words {
				words[i] = g.pick(vocabulary)
			}
			b.WriteString(strings.ToUpper(words[0][:1]) + words[0][1:] + " " + strings.Join(words[1:], " ") + ". ")
		}
		b.WriteString("\r\n\r\n")
	}
	return b.String()
}

// text writes a text part of some size bytes, quoted-printable.
func (g *generator) text(subtype, before string, size int) {
	g.field("Content-Type", "text/"+subtype+"; charset=utf-8")
	g.field("Content-Transfer-Encoding", "quoted-printable")
	g.line("")
	w := quotedprintable.NewWriter(&g.out)
	_, _ = w.Write([]byte(before + g.prose(max(size-g.out.Len(), 200)))) // a Builder takes everything
	_ = w.Close()
	g.line("")
}

func (g *generator) boundary() string { return fmt.Sprintf("000000000000%016x", g.rand.Uint64()) }

func (g *generator) alternative(size int) {
	boundary := g.boundary()
	g.field("Content-Type", `multipart/alternative; boundary="`+boundary+`"`)
	g.line("")
	g.line("--" + boundary)
	g.text("plain", "", size/2)
	g.line("--" + boundary)
	g.text("html", "<html><body><p>", size)
	g.line("--" + boundary + "--")
}

func (g *generator) attachment(size int) {
	boundary := g.boundary()
	g.field("Content-Type", `multipart/mixed; boundary="`+boundary+`"`)
	g.line("")
	g.line("--" + boundary)
	g.text("plain", "", size/3)
	g.line("--" + boundary)
	name := g.pick([]string{"report.pdf", "minutes.pdf", "photo.png", "figures.xlsx", "übersicht.pdf"})
	encoded := mime.BEncoding.Encode("utf-8", name)
	g.field("Content-Type", `application/octet-stream; name="`+encoded+`"`)
	g.field("Content-Disposition", `attachment; filename="`+encoded+`"`)
	g.field("Content-Transfer-Encoding", "base64")
	g.line("")
	data := make([]byte, max(size-g.out.Len(), 300)*3/4)
	for i := range data {
		data[i] = byte(g.rand.Uint32())
	}
	text := base64.StdEncoding.EncodeToString(data)
	for len(text) > 0 {
		n := min(76, len(text))
		g.line(text[:n])
		text = text[n:]
	}
	g.line("--" + boundary + "--")
}

var names = []string{"Ann", "Bob", "Carol", "Dan", "Eve", "Frank", "Grace", "Heidi", "Ivan", "Judy", "Mallory", "Niaj", "Olivia", "Peggy", "René", "Sybil", "Jörg", "Paweł"}

var subjects = []string{
	"Minutes of Monday's meeting", "Invoice for October", "Quarterly figures", "Lunch on Thursday?",
	"Your order has been shipped", "Draft of the proposal", "Photos from the trip", "Re-scheduling the review",
	"Réunion de vendredi", "Grüße aus Köln", "会議の議事録", "Отчёт за неделю", "Release notes", "Out of office",
	"Password expires in 5 days", "Welcome to the team 🎉", "Contract, second version", "Question about the API",
}

var vocabulary = strings.Fields(`the a we you they this that our your project meeting report budget team plan
	review draft version number week month quarter customer order invoice delivery address question answer
	please find attached thanks regards schedule change update release test result table figure page
	agree send read write open close start finish before after during under with without about again
	quickly clearly probably perhaps maybe tomorrow today Friday café naïve façade zł größer`)
