package export

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"
	"time"

	"headroom/jobs"
)

// LabelsHeader is the header with the labels of a message in an mbox, as in Google's
// own exports. Its values are the labels' ids.
const LabelsHeader = "X-Gmail-Labels"

// Mbox writes messages to w as an mbox of the kind mboxrd: before each a line
// "From ID@xxx DATE" with the moment at which Gmail received it, in UTC, and a
// header with its labels; lines that begin with "From " after any number of ">"
// get one more ">", so that a reader can take it away again; after each an empty
// line. Otherwise the bytes are those that Gmail had, line ends included; a
// message that ends within a line gets a line end.
func Mbox(ctx context.Context, o Options, w io.Writer) (Result, error) {
	out := &mbox{w: bufio.NewWriterSize(w, bufferSize), r: bufio.NewReaderSize(nil, bufferSize)}
	r, err := o.each(ctx, out.write)
	return r, errors.Join(err, out.w.Flush())
}

const bufferSize = 64 << 10

type mbox struct {
	w *bufio.Writer
	r *bufio.Reader
}

// write writes one message.
func (b *mbox) write(m jobs.Message, raw io.Reader) error {
	b.r.Reset(raw)
	end := b.lineEnd()
	received := m.InternalDate.UTC()
	if received.IsZero() { // readers require a date
		received = time.Unix(0, 0).UTC()
	}
	fmt.Fprintf(b.w, "From %s@xxx %s\n%s", word(m.ID), received.Format(time.ANSIC), labels(m.Labels, end))
	err := b.copyQuoted(end)
	if _, failed := b.w.WriteString("\n"); failed != nil {
		return failed
	}
	return err
}

// lineEnd returns the line end of the message's first line.
func (b *mbox) lineEnd() string {
	begin, _ := b.r.Peek(4 << 10) // fewer bytes at the end; an error recurs with the next read
	if line, _, ok := strings.Cut(string(begin), "\n"); ok && strings.HasSuffix(line, "\r") {
		return "\r\n"
	}
	return "\n"
}

// copyQuoted copies the message line by line, however long its lines.
func (b *mbox) copyQuoted(end string) error {
	for {
		if err := b.quote(); err != nil {
			return eof(err)
		}
		line, err := b.r.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) {
			if _, err := b.w.Write(line); err != nil {
				return err
			}
			line, err = b.r.ReadSlice('\n')
		}
		if _, failed := b.w.Write(line); failed != nil {
			return failed
		}
		if err != nil {
			if _, failed := b.w.WriteString(end); failed != nil {
				return failed
			}
			return eof(err)
		}
	}
}

// quote copies the ">" at the beginning of a line, and one more if "From " follows.
// The error is that of the reader when nothing is left.
func (b *mbox) quote() error {
	for quoted := false; ; quoted = true {
		begin, err := b.r.Peek(len("From "))
		switch {
		case len(begin) == 0 && !quoted:
			return err
		case string(begin) == "From ":
			return b.w.WriteByte('>')
		case len(begin) == 0 || begin[0] != '>':
			return nil
		}
		if _, err := b.r.Discard(1); err != nil {
			return err
		}
		if err := b.w.WriteByte('>'); err != nil {
			return err
		}
	}
}

func eof(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// labels returns the header with the labels' ids, folded if it is long.
func labels(ids []string, end string) string {
	if len(ids) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(LabelsHeader + ": ")
	for i, width := 0, b.Len(); i < len(ids); i++ {
		id := mime.QEncoding.Encode("utf-8", ids[i]) // encodes what is not plain ASCII
		if strings.ContainsAny(id, `,"\`) {
			id = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(id) + `"`
		}
		if i > 0 {
			b.WriteByte(',')
			if width += 1; width+len(id) > 78 {
				b.WriteString(end + " ")
				width = 1
			}
		}
		b.WriteString(id)
		width += len(id)
	}
	return b.String() + end
}

// word returns an id as one printable word.
func word(id string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}, id)
}
