package google

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"headroom/quota"
)

// slowBody gives a piece of its bytes at a time, and ends with the request.
type slowBody struct {
	ctx   context.Context
	piece int
	every time.Duration
	left  int
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	select {
	case <-time.After(b.every): // virtual
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
	n := min(len(p), b.piece, b.left)
	b.left -= n
	return n, nil
}

func (b *slowBody) Close() error { return nil }

// slowly is a transport whose bodies come in slowly.
type slowly struct{ body slowBody }

func (s slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	body := s.body
	body.ctx = r.Context()
	return &http.Response{StatusCode: http.StatusOK, ContentLength: -1, Request: r, Body: &body}, nil
}

func TestABodyThatComesTooSlowlyEnds(t *testing.T) {
	for _, tt := range []struct {
		name string
		body slowBody
		want error
		most time.Duration
	}{
		{"a byte a second", slowBody{piece: 1, every: time.Second, left: 1 << 20}, errSlow, anySpeed + 2*time.Second},
		{"nothing for an hour", slowBody{piece: 1, every: time.Hour, left: 10}, errSlow, patience + time.Second},
		{"stops after a good start", slowBody{piece: 1 << 20, every: patience + 1, left: 10 << 20}, errSlow, patience + time.Second},
		{"slow but steady", slowBody{piece: 4 << 10, every: 3 * time.Second, left: 100 << 10}, nil, time.Hour},
		{"20 MB at 200 kB a second", slowBody{piece: 100_000, every: 500 * time.Millisecond, left: 15 << 20}, nil, time.Hour},
		{"below the least speed", slowBody{piece: 10 << 10, every: time.Second, left: 15 << 20}, errSlow, anySpeed + 2*time.Second},
		{"short and slow", slowBody{piece: 1, every: time.Second, left: 10}, nil, time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1", nil)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := bodyMeter{slowly{tt.body}}.RoundTrip(request)
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if !errors.Is(err, tt.want) || time.Since(start) > tt.most {
					t.Errorf("ended after %s with %v, want %v within %s", time.Since(start), err, tt.want, tt.most)
				}
			})
		})
	}
}

// pattern writes size bytes that depend on seed.
func pattern(w io.Writer, seed byte, size int) error {
	chunk := make([]byte, 64<<10)
	for size > 0 {
		for i := range chunk {
			seed = seed*5 + byte(size) + 3
			chunk[i] = seed
		}
		n := min(size, len(chunk))
		if _, err := w.Write(chunk[:n]); err != nil {
			return err
		}
		size -= n
	}
	return nil
}

// TestLargeMessagesPassThroughMemory fetches ten messages of 35 MB at once, from a
// server that makes them up as it sends them, and looks at the heap meanwhile.
func TestLargeMessagesPassThroughMemory(t *testing.T) {
	if testing.Short() || race {
		t.Skip("takes seconds, and tens of them under the race detector")
	}
	const (
		many = 10
		size = 35 << 20
		most = 150 << 20
	)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.URL.Path[len("/gmail/v1/users/me/messages/"):]
		fmt.Fprintf(w, `{"id":%q,"sizeEstimate":%d,"raw":"`, id, size)
		encoder := base64.NewEncoder(base64.URLEncoding, w)
		_ = pattern(encoder, id[0], size) // the client counts
		_ = encoder.Close()
		fmt.Fprint(w, `","historyId":"7"}`)
	}))
	t.Cleanup(server.Close)
	g := newTestGoogle(t, Options{Endpoint: server.URL, Ledger: newLedger(t, 1000)})
	m, err := g.Mailbox(t.Context(), ann, quota.Interactive, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			id := string(rune('a' + i))
			got, want := fnv.New64a(), fnv.New64a()
			f, err := m.Fetch(t.Context(), id, got)
			if err == nil {
				err = pattern(want, id[0], size)
			}
			if err != nil || f.HistoryID != 7 || sum(got) != sum(want) {
				t.Errorf("message %s came with %+v and sum %x, %v, want sum %x", id, f, sum(got), err, sum(want))
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var peak uint64
	for {
		select {
		case <-tick.C:
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			peak = max(peak, stats.HeapInuse)
			continue
		case <-done:
		}
		break
	}
	t.Logf("heap in use at most: %d MiB", peak>>20)
	if peak > most {
		t.Errorf("the heap had %d MiB in use, want %d at most", peak>>20, most>>20)
	}
	if g.budget.peak > many*heldPerByte*heldMost || g.budget.used != 0 {
		t.Errorf("%d bytes were held at most and %d are now, want %d and none", g.budget.peak, g.budget.used, many*heldPerByte*heldMost)
	}
}

func sum(h hash.Hash64) uint64 { return h.Sum64() }
