// Package localredis starts redis-server processes of its own on free ports of
// the loopback interface, for benchmarks and tests. Their data is removed
// with them.
package localredis

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Server is one redis-server process. Its methods are safe for concurrent use.
type Server struct {
	Addr string // host:port
	args []string
	dir  string // working folder, removed by Stop

	mu    sync.Mutex
	cmd   *exec.Cmd     // nil: not running
	ended chan struct{} // closed when the process of cmd is gone
}

// Start runs the redis-server found on PATH and waits until it answers. Args are
// further options, for instance "--appendonly", "yes". The caller must Stop it.
func Start(ctx context.Context, args ...string) (*Server, error) {
	dir, err := os.MkdirTemp("", "headroom-redis-")
	if err != nil {
		return nil, fmt.Errorf("folder for redis-server: %w", err)
	}
	// A port that was free may be taken before redis-server binds it.
	var last error
	for range 5 {
		port, err := freePort()
		if err != nil {
			last = err
			continue
		}
		s := &Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), dir: dir}
		s.args = append([]string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1",
			"--dir", dir, "--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction",
			"--daemonize", "no", "--loglevel", "warning"}, args...)
		if last = s.Restart(ctx); last == nil {
			return s, nil
		}
		if errors.Is(last, exec.ErrNotFound) {
			break
		}
	}
	os.RemoveAll(dir)
	return nil, last
}

// URL is the server's address for clients.
func (s *Server) URL() string { return "redis://" + s.Addr + "/0" }

// Restart starts the process again, after Kill, on the same port and folder, and
// waits until it answers.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		return errors.New("redis-server is still running")
	}
	log := new(bytes.Buffer)
	cmd := exec.Command("redis-server", s.args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = dieWithParent()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start redis-server (install it, or give the URL of a running one): %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed in the end
	}()
	s.cmd, s.ended = cmd, ended
	if err := s.waitReady(ctx); err != nil {
		s.stopLocked(syscall.SIGKILL)
		return fmt.Errorf("redis-server on %s: %w: %s", s.Addr, err, bytes.TrimSpace(log.Bytes()))
	}
	return nil
}

func (s *Server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		err := ping(ctx, s.Addr)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-s.ended:
			return errors.New("it has ended")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// ping asks for a PONG in Redis' own words: a client's library would log every
// refused attempt of the first moments.
func ping(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if answer != "+PONG\r\n" {
		return fmt.Errorf("answered %q", answer)
	}
	return nil
}

// Kill ends the process at once, as a crash would. Restart brings it back.
func (s *Server) Kill() { s.stop(syscall.SIGKILL) }

// Signal sends a signal to the process, for instance SIGSTOP.
func (s *Server) Signal(sig os.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return errors.New("redis-server is not running")
	}
	return s.cmd.Process.Signal(sig)
}

// Stop ends the process and removes its folder. Stopping twice is fine.
func (s *Server) Stop() {
	s.stop(syscall.SIGKILL)
	os.RemoveAll(s.dir)
}

func (s *Server) stop(sig os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopLocked(sig)
}

func (s *Server) stopLocked(sig os.Signal) {
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Signal(sig)
	<-s.ended
	s.cmd = nil
}

// maxPort leaves room for the port of a cluster's bus, 10,000 above.
const maxPort = 55_000

func freePort() (int, error) {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if port <= maxPort {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port: none up to %d", maxPort)
}
