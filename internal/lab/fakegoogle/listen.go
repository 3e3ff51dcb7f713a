package fakegoogle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// Listen serves on addr ("127.0.0.1:0" takes a free port) and returns the URL
// that clients need. shutdown stops the server: it lets go of calls that are
// held, waits for those being answered until its context ends, and then closes
// what is left. It must be called once.
func (s *Server) Listen(addr string) (url string, shutdown func(context.Context) error, err error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return "", nil, fmt.Errorf("fake Google: listen on %s: %w", addr, err)
	}
	errorLog, err := zap.NewStdLogAt(s.log, zap.DebugLevel)
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("fake Google: %w", err), listener.Close())
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: 30 * time.Second, ErrorLog: errorLog}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	shutdown = func(ctx context.Context) error {
		s.Close()
		err := server.Shutdown(ctx)
		if err != nil {
			err = errors.Join(err, server.Close())
		}
		if e := <-served; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
		return err
	}
	url = "http://" + listener.Addr().String()
	s.baseURL.Store(&url)
	return url, shutdown, nil
}
