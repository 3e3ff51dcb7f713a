package push

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// googleKeys is where Google publishes its keys, and what the library asks for.
const googleKeys = "https://www.googleapis.com/oauth2/v3/certs"

const (
	keysTimeout  = 5 * time.Second
	keysPause    = time.Second // after keys could not be had
	keysFreshFor = time.Minute // in which a key that is not among them is none
	leastKeyLife = time.Minute
	mostKeyLife  = 24 * time.Hour
	largestKeys  = 1 << 20 // bytes
)

// A keysError says that the issuer's keys could not be had, so nothing is known of
// the token.
type keysError struct{ err error }

func (e *keysError) Error() string { return "keys of the issuer of tokens: " + e.err.Error() }
func (e *keysError) Unwrap() error { return e.err }

// keySource is a transport that has one answer: the issuer's keys. Those of an
// issuer that is not Google are found as OpenID Connect Discovery says.
type keySource struct {
	base   http.RoundTripper
	issuer string

	mu      sync.Mutex
	ids     []string // of the keys that were last fetched
	body    []byte   // these keys
	life    time.Duration
	fetched time.Time
	failed  time.Time
	failure error
}

// outdated reports whether a key may be among the issuer's although it is not among
// those that were fetched. Keys are not fetched for every made-up id.
func (k *keySource) outdated(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.fetched.IsZero() && !slices.Contains(k.ids, id) && time.Since(k.fetched) > keysFreshFor
}

// RoundTrip implements [http.RoundTripper]. Callers who waited get what came
// meanwhile. Where no new keys can be had, the old ones hold for as long as their
// server said: a made-up id must not make us forget good keys.
func (k *keySource) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.String() != googleKeys {
		return nil, fmt.Errorf("no keys of %s are taken", r.URL.Host)
	}
	k.mu.Lock() // who else needs the keys waits for them
	defer k.mu.Unlock()
	if (k.fetched.IsZero() || time.Since(k.fetched) >= keysFreshFor) && time.Since(k.failed) >= keysPause {
		if k.failure = k.renew(r.Context()); k.failure != nil {
			k.failed = time.Now()
		}
	}
	left := k.life - time.Since(k.fetched)
	if k.failure != nil && (k.fetched.IsZero() || left <= 0) {
		return nil, &keysError{k.failure}
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Cache-Control": {fmt.Sprintf("max-age=%d", int(left.Seconds()))}},
		Body:   io.NopCloser(bytes.NewReader(k.body)), ContentLength: int64(len(k.body)),
	}, nil
}

// renew fetches the keys. The caller holds mu.
func (k *keySource) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keysTimeout)
	defer cancel()
	body, life, err := k.fetch(ctx)
	if err != nil {
		return err
	}
	ids, err := keyIDs(body)
	if err != nil {
		return err
	}
	k.ids, k.body, k.life, k.fetched = ids, body, life, time.Now()
	return nil
}

// fetch returns the keys, and for how long they are good.
func (k *keySource) fetch(ctx context.Context) (body []byte, life time.Duration, err error) {
	url := googleKeys
	if k.issuer != Google {
		text, _, err := k.get(ctx, strings.TrimSuffix(k.issuer, "/")+"/.well-known/openid-configuration")
		if err != nil {
			return nil, 0, err
		}
		var d struct {
			Issuer string `json:"issuer"`
			Keys   string `json:"jwks_uri"`
		}
		if err := json.Unmarshal(text, &d); err != nil || d.Issuer != k.issuer || d.Keys == "" {
			return nil, 0, fmt.Errorf("%s describes the issuer %q, with keys at %q (%v)", k.issuer, clip(d.Issuer), clip(d.Keys), err)
		}
		url = d.Keys
	}
	return k.get(ctx, url)
}

func (k *keySource) get(ctx context.Context, url string) (body []byte, life time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, 0, err
	}
	answer, err := k.base.RoundTrip(r)
	if err != nil {
		return nil, 0, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(io.LimitReader(answer.Body, largestKeys))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("get %s: %w", url, err)
	}
	return body, min(max(lifeOf(answer.Header), leastKeyLife), mostKeyLife), nil
}

// lifeOf is how long an answer may be kept; zero if it does not say.
func lifeOf(h http.Header) time.Duration {
	for part := range strings.SplitSeq(h.Get("Cache-Control"), ",") {
		if text, ok := strings.CutPrefix(strings.TrimSpace(part), "max-age="); ok {
			age, _ := strconv.Atoi(h.Get("Age")) // 0 without one
			seconds, err := strconv.Atoi(text)
			if err == nil {
				return time.Duration(seconds-age) * time.Second
			}
		}
	}
	return 0
}

func keyIDs(body []byte) (ids []string, err error) {
	var set struct {
		Keys []struct {
			ID string `json:"kid"`
		} `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	for _, key := range set.Keys {
		ids = append(ids, key.ID)
	}
	return ids, nil
}
