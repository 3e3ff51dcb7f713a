package quota_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/redis/go-redis/v9"

	"headroom/quota"
)

// TestFailoverDialerPutsTheWordFirst: error replies alone are changed, however the
// pieces fall, and what looks like one within content is not.
func TestFailoverDialerPutsTheWordFirst(t *testing.T) {
	const content = "\r\n-ERR READONLY not an error\r\n"
	in := "+OK\r\n*3\r\n$30\r\n" + content + "\r\n:1\r\n$-1\r\n" +
		"-ERR READONLY You can't write against a read only replica.\r\n" +
		"-ERR Error running script: @user_script:3: -READONLY You can't write.\r\n" +
		"-READONLY plain\r\n-ERR unknown command `READONLY`\r\n-proxy: LOADING Redis is loading\r\n-OOM as it is\r\n" +
		"*1\r\n!12\r\nERR READONLY\r\n$0\r\n\r\n+PONG\r\n"
	want := strings.NewReplacer(
		"-ERR READONLY You", "-READONLY You",
		"-ERR Error running script: @user_script:3: -READONLY You", "-READONLY You",
		"-proxy: LOADING", "-LOADING",
	).Replace(in)
	for name, pieces := range map[string]func(io.Reader) io.Reader{
		"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "by halves": iotest.HalfReader,
	} {
		dial := quota.FailoverDialer(func(context.Context, string, string) (net.Conn, error) {
			return readConn{Reader: pieces(strings.NewReader(in))}, nil
		})
		conn, err := dial(t.Context(), "tcp", "")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(conn)
		if err != nil || string(got) != want {
			t.Errorf("%s: read %q, %v, want %q", name, got, err, want)
		}
		if _, err := conn.Write([]byte("PING")); err == nil {
			t.Errorf("%s: a connection to a replica is written to", name)
		}
	}
	long := bytes.Repeat([]byte("-x"), 100<<10) // a line without an end passes
	dial := quota.FailoverDialer(func(context.Context, string, string) (net.Conn, error) {
		return readConn{Reader: bytes.NewReader(long)}, nil
	})
	conn, _ := dial(t.Context(), "tcp", "")
	if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, long) {
		t.Errorf("read %d bytes, %v, want %d", len(got), err, len(long))
	}
}

// readConn is a connection that is only read from.
type readConn struct {
	net.Conn
	io.Reader
}

func (c readConn) Read(p []byte) (int, error) { return c.Reader.Read(p) }

func (readConn) Write(p []byte) (int, error) { return len(p), nil }

// TestClientsOfALedgerLeaveAReplica holds the options that customers use to it.
func TestClientsOfALedgerLeaveAReplica(t *testing.T) {
	dialled := false
	o := quota.ClientOptions(&redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) {
		dialled = true
		return readConn{Reader: strings.NewReader("-ERR READONLY no\r\n")}, nil
	}})
	conn, err := o.Dialer(t.Context(), "tcp", "")
	if err != nil || !dialled {
		t.Fatalf("dialled %t, %v", dialled, err)
	}
	if got, _ := io.ReadAll(conn); string(got) != "-READONLY no\r\n" {
		t.Errorf("read %q", got)
	}
}
