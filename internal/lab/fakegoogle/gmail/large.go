package gmail

import (
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// The filling of a large message is blocks of base64, whole lines each, so that
// any run of blocks decodes by itself. A block is shorter than what gzip looks
// back, which keeps compressing it cheap, and begins with its number, so that two
// that change places change the hash.
const (
	fillingLine    = 76                        // characters of base64
	fillingLines   = 210                       // a block
	fillingBlock   = fillingLines * (76 + 2)   // bytes with line ends
	fillingDecoded = fillingLines * 76 / 4 * 3 // bytes that a block decodes to
)

// largeAttachment is the place of the attachment among the parts of a large
// message.
const largeAttachment = 1

// SmallestLarge is the least size of [Mailbox.AddLarge], in bytes.
const SmallestLarge = 2_000

// fillingTemplate is a block without its number.
var fillingTemplate = sync.OnceValue(func() string {
	data := make([]byte, fillingDecoded)
	source := rand.NewChaCha8([32]byte{})
	_, _ = source.Read(data) // never fails
	text := base64.StdEncoding.EncodeToString(data)
	var b strings.Builder
	for ; len(text) > 0; text = text[fillingLine:] {
		b.WriteString(text[:fillingLine] + "\r\n")
	}
	return b.String()
})

// filling reads blocks one after the other.
type filling struct {
	blocks, next int
	block        []byte // the one being read
	rest         []byte // of it
}

func (f *filling) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		if f.next == f.blocks {
			return 0, io.EOF
		}
		if f.block == nil {
			f.block = []byte(fillingTemplate())
		}
		copy(f.block, fmt.Sprintf("%012d", f.next)) // digits are base64, too
		f.rest = f.block
		f.next++
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// AddLarge puts a made-up message of exactly so many bytes into the mailbox: a
// text and an attachment, made anew whenever it is read, so that thousands of
// 35 MB cost no memory. It returns the message's id, as [Mailbox.Add] does; a size
// below [SmallestLarge] counts as that.
func (m *Mailbox) AddLarge(size int, labels ...string) (id string) {
	m.mu.Lock()
	number := m.large
	m.large++
	m.mu.Unlock()
	return m.add(largeContent(number, max(size, SmallestLarge)), labels)
}

// largeContent makes the n-th large message of a mailbox. What whole blocks leave
// of its size stands in the text.
func largeContent(n, size int) content {
	date := firstGenerated.Add(time.Duration(n)*generatedEvery + generatedEvery/2)
	const boundary = "000000000000large"
	before := strings.Join([]string{
		"Date: " + date.Format(time.RFC1123Z),
		"From: Ann <ann@example.com>",
		"To: Bob <bob@example.org>",
		fmt.Sprintf("Subject: Large message %d", n),
		fmt.Sprintf("Message-ID: <large.%d.%d@mail.example.com>", n, size),
		"MIME-Version: 1.0",
		`Content-Type: multipart/mixed; boundary="` + boundary + `"`,
		"", "--" + boundary,
		"Content-Type: text/plain; charset=utf-8", "", "",
	}, "\r\n")
	between := strings.Join([]string{
		"", "--" + boundary,
		`Content-Type: application/octet-stream; name="large.bin"`,
		`Content-Disposition: attachment; filename="large.bin"`,
		"Content-Transfer-Encoding: base64", "", "",
	}, "\r\n")
	tail := "--" + boundary + "--\r\n"
	left := size - len(before) - len(between) - len(tail)
	return content{
		head: []byte(before + largeText(left%fillingBlock) + between),
		fill: left / fillingBlock,
		tail: []byte(tail),
	}
}

// largeText returns text of so many bytes.
func largeText(size int) string {
	const line = "This message is as large as it was asked to be, and says nothing else.\r\n"
	return strings.Repeat(line, size/len(line)) + strings.Repeat("x", size%len(line))
}
