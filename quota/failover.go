package quota

import (
	"bytes"
	"context"
	"errors"
	"net"
	"regexp"
	"strconv"
	"sync/atomic"
	"syscall"
)

// maxReplyLine bounds how much of an unfinished line of a reply is kept.
const maxReplyLine = 64 << 10

// refusalWord finds the word by which Redis says that it cannot serve now, where
// something precedes it, as proxies and scripts have it: "ERR READONLY You can't
// write against a read only replica".
var refusalWord = regexp.MustCompile(`^-.*?[ :-](READONLY|LOADING|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOREPLICAS) `)

// FailoverDialer returns a dialer whose connections give such answers the form of
// Redis' own, with the word first, and are used no more once one says READONLY. The
// client knows no other form: it would keep a connection to a primary that became a
// replica. [ClientOptions] uses it.
func FailoverDialer(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		wrapped := &replyConn{Conn: conn}
		if raw, ok := conn.(syscall.Conn); ok {
			return &rawReplyConn{wrapped, raw}, nil
		}
		return wrapped, nil
	}
}

// replyConn is a connection to a Redis whose error replies begin with the word that
// says what is wrong. It follows the framing of RESP, so that no content is touched.
//
// One that has answered READONLY is used no more: whoever dials again may reach the
// new primary. The client sees to it only where the first command of a pipeline was
// refused.
type replyConn struct {
	net.Conn
	buf      []byte // for reading
	out      []byte // read, and not yet taken
	line     []byte // an unfinished line
	skip     int    // bytes of content that follow before the next line
	readOnly atomic.Bool
}

var errReadOnly = errors.New("the connection leads to a Redis that only reads")

// Write implements [net.Conn].
func (c *replyConn) Write(p []byte) (int, error) {
	if c.readOnly.Load() {
		return 0, errReadOnly
	}
	return c.Conn.Write(p)
}

// Read implements [net.Conn].
func (c *replyConn) Read(p []byte) (int, error) {
	for len(c.out) == 0 {
		if cap(c.buf) < len(p) {
			c.buf = make([]byte, len(p))
		}
		n, err := c.Conn.Read(c.buf[:len(p)])
		c.take(c.buf[:n])
		if err != nil && len(c.out) == 0 {
			return 0, err
		}
		if len(p) == 0 {
			return 0, nil
		}
	}
	n := copy(p, c.out)
	c.out = c.out[n:]
	return n, nil
}

// take moves what was read to out.
func (c *replyConn) take(b []byte) {
	c.out = c.out[:0]
	for len(b) > 0 {
		if c.skip > 0 {
			n := min(c.skip, len(b))
			c.out, b, c.skip = append(c.out, b[:n]...), b[n:], c.skip-n
			continue
		}
		end := bytes.IndexByte(b, '\n') + 1
		n := end
		if end == 0 {
			n = len(b)
		}
		held := len(c.line) > 0 && c.line[0] == '-'
		c.line = append(c.line, b[:n]...)
		isError := c.line[0] == '-' && len(c.line) < maxReplyLine
		switch {
		case isError && end > 0:
			line := plainRefusal(c.line)
			if bytes.HasPrefix(line, []byte("-READONLY ")) {
				c.readOnly.Store(true)
			}
			c.out = append(c.out, line...)
		case isError: // held until it is whole
		case held:
			c.out = append(c.out, c.line...)
		default:
			c.out = append(c.out, b[:n]...)
		}
		if end > 0 {
			c.skip, c.line = contentLength(c.line), c.line[:0]
		} else if !isError && held {
			c.line[0] = '+' // too long to be held: passed on as it comes
		}
		b = b[n:]
	}
}

// contentLength is how many bytes follow a line, its own end included.
func contentLength(line []byte) int {
	if line[0] != '$' && line[0] != '=' && line[0] != '!' {
		return 0
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(line[1:])))
	if err != nil || n < 0 {
		return 0
	}
	return n + len("\r\n")
}

// plainRefusal is an error reply with the word that says what is wrong in front.
func plainRefusal(line []byte) []byte {
	found := refusalWord.FindSubmatchIndex(line)
	if found == nil {
		return line
	}
	return append([]byte("-"), line[found[2]:]...)
}

// rawReplyConn is a replyConn that the client can ask whether it is still open.
type rawReplyConn struct {
	*replyConn
	raw syscall.Conn
}

// SyscallConn implements [syscall.Conn].
func (c *rawReplyConn) SyscallConn() (syscall.RawConn, error) {
	if c.readOnly.Load() {
		return nil, errReadOnly
	}
	return c.raw.SyscallConn()
}
