package localredis

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy is a way to a Redis on which answers can be held up. Its methods are safe
// for concurrent use.
type Proxy struct {
	Addr string // host:port

	ln      net.Listener
	delay   atomic.Int64
	asked   atomic.Int64
	rewords atomic.Bool

	mu    sync.Mutex
	to    string
	conns map[net.Conn]bool // nil: closed
}

// NewProxy listens on a free port and passes connections on to the Redis at to.
// The caller must Close it.
func NewProxy(to string) (*Proxy, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for connections to %s: %w", to, err)
	}
	p := &Proxy{Addr: ln.Addr().String(), to: to, ln: ln, conns: map[net.Conn]bool{}}
	go p.accept()
	return p, nil
}

// Delay holds up each piece of an answer from now on.
func (p *Proxy) Delay(d time.Duration) { p.delay.Store(int64(d)) }

// Asked counts the pieces of questions that came while answers were held up.
func (p *Proxy) Asked() int64 { return p.asked.Load() }

// Route leads new connections to the Redis at to. Those that are open stay where
// they are.
func (p *Proxy) Route(to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = to
}

// Reword puts "ERR" before the word of a replica's refusals from now on.
func (p *Proxy) Reword() { p.rewords.Store(true) }

// answer is what the client gets of a piece of an answer.
func (p *Proxy) answer(piece []byte) []byte {
	if !p.rewords.Load() {
		return piece
	}
	return bytes.ReplaceAll(piece, []byte("-READONLY "), []byte("-ERR READONLY "))
}

// Close ends all connections.
func (p *Proxy) Close() {
	p.ln.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

// keep notes a connection for Close, and reports whether there is still time.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) drop(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *Proxy) accept() {
	for {
		client, err := p.ln.Accept()
		if err != nil {
			return // it was closed
		}
		go p.pass(client)
	}
}

func (p *Proxy) pass(client net.Conn) {
	if !p.keep(client) {
		return
	}
	defer p.drop(client)
	p.mu.Lock()
	to := p.to
	p.mu.Unlock()
	server, err := net.Dial("tcp", to)
	if err != nil || !p.keep(server) {
		return
	}
	defer p.drop(server)
	go func() {
		defer server.Close()
		_, _ = io.Copy(server, questions{client, p}) // it ends when either side is gone
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		<-time.After(time.Duration(p.delay.Load()))
		if _, err := client.Write(p.answer(buf[:n])); err != nil {
			return
		}
	}
}

// questions is what a client sends, counted.
type questions struct {
	io.Reader
	p *Proxy
}

func (q questions) Read(b []byte) (int, error) {
	n, err := q.Reader.Read(b)
	if n > 0 && q.p.delay.Load() > 0 {
		q.p.asked.Add(1)
	}
	return n, err
}
