package google

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func testBudget(limit int64) *budget { return newBudget(limit, newMetrics(nil)) }

// TestBudgetHoldsForAnyMixOfMessages runs many fetches of random sizes that take
// their bytes in random steps, some of which give up, and checks that all end
// and that no more was held than the budget and the largest message.
func TestBudgetHoldsForAnyMixOfMessages(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			limit := 1 + random.Int64N(5000)
			b := testBudget(limit)
			var largest int64
			var all sync.WaitGroup
			for range 100 {
				size := 1 + random.Int64N(3000)
				largest = max(largest, size)
				steps := rand.New(rand.NewPCG(random.Uint64(), 2))
				all.Go(func() {
					ctx, cancel := t.Context(), context.CancelFunc(func() {})
					if steps.IntN(5) == 0 {
						ctx, cancel = context.WithTimeout(ctx, time.Duration(steps.IntN(2000))*time.Millisecond)
					}
					defer cancel()
					_, ticket := b.withTicket(ctx, nil)
					defer ticket.release()
					for left := size; left > 0; {
						step := 1 + steps.Int64N(left)
						if err := ticket.take(ctx, step); err != nil {
							return
						}
						left -= step
						time.Sleep(time.Duration(steps.IntN(50)) * time.Millisecond) // virtual
					}
				})
			}
			all.Wait() // synctest fails the test on a deadlock
			if b.peak > limit+largest {
				t.Errorf("seed %d: held %d bytes at most, want no more than %d + %d", seed, b.peak, limit, largest)
			}
			if b.used != 0 || b.waiting != 0 || b.active.Len() != 0 {
				t.Errorf("seed %d: after all: %d bytes used, %d waiting, %d active, want none", seed, b.used, b.waiting, b.active.Len())
			}
		})
	}
}

func TestOnlyTheOldestExceedsTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBudget(100)
		ctx := t.Context()
		_, oldest := b.withTicket(ctx, nil)
		_, second := b.withTicket(ctx, nil)
		_, third := b.withTicket(ctx, nil)
		if err := oldest.take(ctx, 60); err != nil {
			t.Fatal(err)
		}
		var order []string
		var all sync.WaitGroup
		take := func(name string, ticket *ticket, n int64) {
			all.Go(func() {
				if err := ticket.take(ctx, n); err != nil {
					t.Error(err)
				}
				order = append(order, name)
			})
			synctest.Wait()
		}
		take("second", second, 50)
		take("third", third, 40) // small enough, so it need not stand behind second
		take("oldest", oldest, 500)
		if got := strings.Join(order, " "); got != "third oldest" {
			t.Errorf("served %q, want third, which fits, and oldest, which may exceed", got)
		}
		oldest.release()
		all.Wait()
		if got := strings.Join(order, " "); got != "third oldest second" {
			t.Errorf("served %q, want second after oldest gave back", got)
		}
		if b.used != 90 {
			t.Errorf("%d bytes in use, want 90", b.used)
		}
	})
}

func TestWaitingForMemoryEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBudget(100)
		_, first := b.withTicket(t.Context(), nil)
		if err := first.take(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, second := b.withTicket(ctx, nil)
		if err := second.take(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("take = %v, want the context's error", err)
		}
		second.release()
		first.release()
		if b.used != 0 || b.waiting != 0 {
			t.Errorf("%d used, %d waiting after all were released", b.used, b.waiting)
		}
	})
}

// answer is a transport that answers every request alike.
type answer struct {
	status int
	body   string
	length int64
}

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, ContentLength: a.length, Request: r,
		Body: io.NopCloser(strings.NewReader(a.body))}, nil
}

func TestABodyTakesWhatItNeedsBeforeItIsRead(t *testing.T) {
	large := strings.Repeat("x", 3<<20)
	for _, tt := range []struct {
		name   string
		answer answer
		held   int64
		want   error
	}{
		{"known length: all at once", answer{200, "12345", 5}, 15, nil},
		{"unknown and small: one step", answer{200, "12345", -1}, 3 * firstStep, nil},
		{"unknown and large: step by step, until the rest passes through", answer{200, large, -1}, 3 * heldMost, nil},
		{"empty", answer{200, "", 0}, 0, nil},
		{"an error's body is cut, not counted", answer{500, large, -1}, 0, nil},
		{"a length beyond any message", answer{200, "12345", maxMessageBody + 1}, 0, errTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := testBudget(1 << 30)
			ctx, ticket := b.withTicket(t.Context(), nil)
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := bodyMeter{tt.answer}.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			if !errors.Is(err, tt.want) {
				t.Errorf("read: %v, want %v", err, tt.want)
			}
			want := tt.answer.body
			if tt.answer.status >= 300 {
				want = want[:maxErrorBody]
			}
			if tt.want == nil && !bytes.Equal(got, []byte(want)) {
				t.Errorf("read %d bytes, want %d", len(got), len(want))
			}
			if ticket.held != tt.held {
				t.Errorf("holds %d bytes, want %d", ticket.held, tt.held)
			}
			ticket.release()
			if b.used != 0 {
				t.Errorf("%d bytes in use after release", b.used)
			}
		})
	}
}

func BenchmarkTicketOfASmallMessage(b *testing.B) {
	budget := testBudget(DefaultBudget)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, ticket := budget.withTicket(b.Context(), nil)
			if err := ticket.take(b.Context(), firstStep); err != nil {
				b.Fatal(err)
			}
			ticket.release()
		}
	})
}
