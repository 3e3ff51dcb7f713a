package redisconn

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// provenDialer returns a dialer like that of a client with o, whose connections
// have answered once. A proxy in front of Redis accepts connections also while
// Redis is away. The client's handshake on such a connection fails, and is
// repeated on it as often as any command may be, for up to half a minute, whereas
// a connection that could not be dialled is dialled anew.
func provenDialer(o *redis.Options) func(ctx context.Context, network, addr string) (net.Conn, error) {
	dial := redis.NewDialer(o)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		deadline := time.Now().Add(o.DialTimeout)
		if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
			deadline = d
		}
		if err := prove(conn, deadline); err != nil {
			conn.Close()
			return nil, &net.OpError{Op: "dial", Net: network, Addr: conn.RemoteAddr(), Err: err}
		}
		return conn, nil
	}
}

// prove asks for one answer, of whatever kind: without a password, Redis refuses.
func prove(conn net.Conn, deadline time.Time) error {
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
		return err
	}
	var b [1]byte
	for n := 0; b[0] != '\n'; n++ { // no more than the answer's line: what follows is the client's
		if n > 1<<10 {
			return errors.New("the answer to PING does not end")
		}
		if _, err := conn.Read(b[:]); err != nil {
			return err
		}
	}
	return conn.SetDeadline(time.Time{})
}
