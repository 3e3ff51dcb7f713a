package push

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	keysTimeout  = 5 * time.Second // of one request to the issuer
	keysPause    = time.Second     // between requests that fail
	keysFreshFor = time.Minute     // no second request for the same document
	largestKeys  = 1 << 20         // bytes
)

// A keyCache is the transport to the issuer of tokens. It requests each of the
// issuer's documents at most once a minute: strangers can name keys that do not
// exist, and the verifier looks for each of them. It is safe for concurrent use;
// requests wait for the one under way.
type keyCache struct {
	base http.RoundTripper

	mu        sync.Mutex
	documents map[string]document // by URL: the discovery document, and the keys it names
	failed    time.Time
	failure   error // of the latest request, nil if it succeeded
}

type document struct {
	body    []byte
	fetched time.Time
}

// err returns why the latest request failed, or nil.
func (c *keyCache) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}

// RoundTrip implements [http.RoundTripper].
func (c *keyCache) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	url := r.URL.String()
	d, known := c.documents[url]
	if !known || time.Since(d.fetched) >= keysFreshFor {
		if c.failure == nil || time.Since(c.failed) >= keysPause {
			d, c.failure = c.fetch(r)
			c.failed = time.Now()
		}
		if c.failure != nil {
			return nil, c.failure
		}
		if c.documents == nil {
			c.documents = map[string]document{}
		}
		c.documents[url] = d
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(d.body)), ContentLength: int64(len(d.body)),
	}, nil
}

func (c *keyCache) fetch(r *http.Request) (document, error) {
	answer, err := c.base.RoundTrip(r)
	if err != nil {
		return document{}, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, largestKeys))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s", answer.Status)
	}
	if err != nil {
		return document{}, fmt.Errorf("get %s: %w", r.URL, err)
	}
	return document{body, time.Now()}, nil
}
