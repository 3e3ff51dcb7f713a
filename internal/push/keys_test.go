package push

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// keyServer answers after a second, or not at all.
type keyServer struct {
	calls atomic.Int64
	down  atomic.Bool
}

func (s *keyServer) RoundTrip(*http.Request) (*http.Response, error) {
	s.calls.Add(1)
	time.Sleep(time.Second)
	if s.down.Load() {
		return nil, errors.New("down")
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Cache-Control": {"public, max-age=3600"}},
		Body: io.NopCloser(strings.NewReader(`{"keys":[{"kid":"a"}]}`))}, nil
}

// Ids that strangers make up neither have the keys fetched more than once a minute
// nor, while there are no new ones to be had, cost us those that still hold.
func TestKeysOutliveMadeUpIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &keyServer{}
		k := &keySource{base: server, issuer: Google}
		get := func() (string, error) {
			r, err := http.NewRequest(http.MethodGet, googleKeys, nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := k.RoundTrip(r)
			if err != nil {
				return "", err
			}
			return answer.Header.Get("Cache-Control"), nil
		}
		crowd := func() {
			for range 30 {
				if _, err := get(); err != nil {
					t.Error(err)
				}
			}
		}
		for minute := range 2 {
			crowd()
			if n := server.calls.Load(); n != int64(minute)+1 {
				t.Errorf("minute %d: %d calls", minute, n)
			}
			if k.outdated("made up") {
				t.Errorf("minute %d: outdated at once", minute)
			}
			time.Sleep(keysFreshFor + time.Millisecond)
		}
		server.down.Store(true)
		if !k.outdated("made up") {
			t.Error("a new key would never be found")
		}
		crowd() // in less than keysPause
		if n := server.calls.Load(); n != 3 {
			t.Errorf("%d calls, want one for the crowd", n)
		}
		if life, err := get(); err != nil || life != "max-age=3538" {
			t.Errorf("while the server is down: %q, %v", life, err)
		}
		time.Sleep(time.Hour)
		if _, err := get(); err == nil {
			t.Error("keys were taken that hold no more")
		}
		server.down.Store(false)
		time.Sleep(keysPause)
		if life, err := get(); err != nil || life != "max-age=3600" {
			t.Errorf("afterwards: %q, %v", life, err)
		}
	})
}
