package quota_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/quota"
	"headroom/quota/price"
)

// TestRepeatsOverHTTP1AreCharged lets the fake Google reset connections that were
// used before: net/http repeats the call on another one, and nobody above sees it.
func TestRepeatsOverHTTP1AreCharged(t *testing.T) {
	for _, tt := range []struct {
		name   string
		lane   quota.Lane
		limit  int64
		writes int64 // that reach the fake
	}{
		{"with room for all", quota.Interactive, 1000, 19},
		{"in a lane that waits", quota.Backfill, 1000, 19},
		{"with room for twelve", quota.Interactive, 12, 12},
		{"in a lane that waits, with room for fifteen", quota.Backfill, 15, 15},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fake, err := fakegoogle.New(fakegoogle.Options{UserLimit: 1_000_000})
			if err != nil {
				t.Fatal(err)
			}
			fake.AddMailbox("ann@example.com")
			for n := 2; n <= 18; n += 2 {
				if err := fake.AddFault(fault.Fault{Nth: n, Close: true}); err != nil {
					t.Fatal(err)
				}
			}
			url, shutdown, err := fake.Listen("127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { shutdown(context.WithoutCancel(t.Context())) })
			project := quota.Project{Lists: []*price.List{gmailWith(t, tt.limit, 1_000_000)},
				Lanes: map[quota.Lane]quota.LaneSettings{quota.Backfill: {Ceiling: 1}}}
			ledger := newLedger(t, newClient(t, realRedis.Addr), project, 1)
			base := &http.Transport{}
			t.Cleanup(base.CloseIdleConnections)
			service := gmailClient(t, url, &quota.Transport{Base: base, Limiter: ledger})
			c := ann(tt.lane)
			if tt.lane == quota.Backfill {
				c.MaxWait = 100 * time.Millisecond
			}
			ctx := quota.WithCaller(t.Context(), c)
			var refused int64
			for i := range 10 {
				_, err := service.Users.GetProfile("me").Context(ctx).Do()
				if denied, ok := errors.AsType[*quota.DeniedError](err); ok {
					refused++
					if denied.Limit != price.UserMinute || denied.RetryAfter < 50*time.Second {
						t.Errorf("call %d: %+v", i+1, denied)
					}
				} else if err != nil {
					t.Errorf("call %d: %v", i+1, err)
				}
			}
			user := fake.Meter().User("ann@example.com")
			used := usedBy(t, ledger, c)
			if user.UnitsAdmitted != tt.writes || used != tt.writes {
				t.Errorf("ten calls were %d writes at Google, and %d units in the ledger; want %d of each", user.UnitsAdmitted, used, tt.writes)
			}
			if (tt.writes == 19) != (refused == 0) {
				t.Errorf("%d calls refused", refused)
			}
			if state, err := ledger.InFlight(t.Context(), "p", c.User, "gmail"); err != nil || state.InFlight != 0 {
				t.Errorf("%d calls in flight in the end, %v", state.InFlight, err)
			}
		})
	}
}

// usedBy is what of a user's minute is used.
func usedBy(t *testing.T, l *quota.Ledger, c quota.Caller) int64 {
	t.Helper()
	d, err := l.Peek(t.Context(), c, "gmail")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range d.Usage {
		if u.Limit == price.UserMinute {
			return u.Used
		}
	}
	t.Fatal("no limit of the user")
	return 0
}

// streams is a server of HTTP/2 that refuses every second stream, or leaves it
// behind, as a server does that goes away. It counts the requests that it got.
type streams struct {
	goAway   bool
	requests atomic.Int64
}

func (s *streams) serve(conn net.Conn) {
	defer conn.Close()
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	framer := http2.NewFramer(conn, conn)
	if framer.WriteSettings() != nil {
		return
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				framer.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			if s.requests.Add(1)%2 == 0 {
				if s.goAway {
					framer.WriteGoAway(f.StreamID-2, http2.ErrCodeNo, nil)
					continue
				}
				framer.WriteRSTStream(f.StreamID, http2.ErrCodeRefusedStream)
				continue
			}
			var header bytes.Buffer
			encoder := hpack.NewEncoder(&header)
			encoder.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
			encoder.WriteField(hpack.HeaderField{Name: "content-type", Value: "application/json"})
			framer.WriteHeaders(http2.HeadersFrameParam{StreamID: f.StreamID, BlockFragment: header.Bytes(), EndHeaders: true})
			framer.WriteData(f.StreamID, true, []byte("{}"))
		}
	}
}

// listen returns the server's address, and a transport that trusts it.
func (s *streams) listen(t *testing.T) (url string, base *http.Transport) {
	t.Helper()
	trusted := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(trusted.Close)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: trusted.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	roots := x509.NewCertPool()
	roots.AddCert(trusted.Certificate())
	base = &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(base.CloseIdleConnections)
	return "https://" + listener.Addr().String(), base
}

func TestRepeatsOverHTTP2AreCharged(t *testing.T) {
	calls := []struct {
		name string
		cost int64
		do   func(ctx context.Context, client *http.Client, url string) error
	}{
		{"a GET", 1, func(ctx context.Context, client *http.Client, url string) error {
			service, err := gmail.NewService(ctx, option.WithHTTPClient(client), option.WithEndpoint(url))
			if err == nil {
				_, err = service.Users.GetProfile("me").Context(ctx).Do()
			}
			return err
		}},
		{"an upload", 25, func(ctx context.Context, client *http.Client, url string) error {
			service, err := gmail.NewService(ctx, option.WithHTTPClient(client), option.WithEndpoint(url))
			if err == nil {
				_, err = service.Users.Messages.Import("me", &gmail.Message{}).
					Media(strings.NewReader("Subject: one\r\n\r\nbody\r\n"), googleapi.ContentType("message/rfc822")).Context(ctx).Do()
			}
			return err
		}},
		{"a batch", 2, func(ctx context.Context, client *http.Client, url string) error {
			part := "--b\r\nContent-Type: application/http\r\n\r\nGET /gmail/v1/users/me/profile\r\n\r\n"
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/batch/gmail/v1", strings.NewReader(part+part+"--b--\r\n"))
			if err != nil {
				return err
			}
			r.Header.Set("Content-Type", "multipart/mixed; boundary=b")
			resp, err := client.Do(r)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			return err
		}},
	}
	for _, goAway := range []bool{false, true} {
		for _, call := range calls {
			name := call.name + " on a stream that is refused"
			if goAway {
				name = call.name + " on a connection that goes away"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				server := &streams{goAway: goAway}
				url, base := server.listen(t)
				// There is room for four writes: the second call takes two of them.
				ledger := newLedger(t, newClient(t, realRedis.Addr), quota.Project{Lists: []*price.List{gmailWith(t, 4*call.cost, 1_000_000)},
					Lanes: map[quota.Lane]quota.LaneSettings{quota.Sync: {Ceiling: 1}, quota.Backfill: {Ceiling: 1}}}, 1)
				client := &http.Client{Transport: &quota.Transport{Base: base, Limiter: ledger}}
				c := ann(quota.Interactive)
				ctx := quota.WithCaller(t.Context(), c)
				for i := range 2 {
					if err := call.do(ctx, client, url); err != nil {
						t.Fatalf("call %d: %v", i+1, err)
					}
				}
				if n, used := server.requests.Load(), usedBy(t, ledger, c); n != 3 || used != 3*call.cost {
					t.Errorf("two calls were written %d times and charged %d units, want 3 and %d", n, used, 3*call.cost)
				}
				err := call.do(ctx, client, url) // is refused when it is to be written again
				if denied, ok := errors.AsType[*quota.DeniedError](err); !ok || denied.Limit != price.UserMinute {
					t.Errorf("a repeat that does not fit: %v", err)
				}
				if n, used := server.requests.Load(), usedBy(t, ledger, c); n != 4 || used != 4*call.cost {
					t.Errorf("then %d were written and %d units charged, want 4 and %d", n, used, 4*call.cost)
				}
			})
		}
	}
}
