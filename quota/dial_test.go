package quota_test

import (
	"context"
	"net"
	"sync"
)

// dialCurrent dials the address that stands in addr at the time.
func dialCurrent(mu *sync.Mutex, addr *string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		mu.Lock()
		current := *addr
		mu.Unlock()
		return (&net.Dialer{}).DialContext(ctx, network, current)
	}
}
