package push

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"headroom/jobs"
)

// stateSync is the state in a channel's first message, which tells of no change.
const stateSync = "sync"

// takeCalendar asks for the sync that a message on a channel is about. All that it
// says stands in headers.
func (h *Handler) takeCalendar(ctx context.Context, r *http.Request) (jobs.PushOutcome, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return "", malformedBody(err)
	}
	id, resource, state := r.Header.Get("X-Goog-Channel-Id"), r.Header.Get("X-Goog-Resource-Id"), r.Header.Get("X-Goog-Resource-State")
	number, err := strconv.ParseUint(r.Header.Get("X-Goog-Message-Number"), 10, 63)
	if err != nil || id == "" || resource == "" || state == "" || len(id) > longestID || len(resource) > longestID {
		return "", malformed(errors.New("the headers lack a channel, a resource, its state or a number"))
	}
	token := r.Header.Get("X-Goog-Channel-Token")
	if token == "" {
		return "", forged(http.StatusUnauthorized, errors.New("no channel token"))
	}
	hash := sha256.Sum256([]byte(token))
	channel, err := h.opts.Store.Channel(ctx, id)
	switch {
	case errors.Is(err, jobs.ErrNotFound):
		return jobs.PushUnknown, h.stray(ctx, jobs.Channel{ID: id, Resource: resource, TokenHash: hash[:],
			WatchKey: jobs.WatchKey{Account: jobs.TokenAccount(token)}})
	case err != nil:
		return "", err
	}
	if subtle.ConstantTimeCompare(hash[:], channel.TokenHash) != 1 {
		return "", forged(http.StatusForbidden, fmt.Errorf("the token is not that of channel %s", id))
	}
	if channel.Resource != "" && channel.Resource != resource {
		return "", forged(http.StatusForbidden, fmt.Errorf("the resource is not that of channel %s", id))
	}
	return h.opts.Store.PushChannel(ctx, id, resource, number, state != stateSync)
}

// stray has a channel stopped that is ours by its mark, although the store does not
// know it: a copy of the store may have been restored that is older than it. Anybody
// can claim so, and have a few calls made for nothing.
func (h *Handler) stray(ctx context.Context, c jobs.Channel) error {
	if !strings.HasPrefix(c.ID, jobs.ChannelMark) || c.Account == "" {
		return nil
	}
	return h.opts.Store.AddStray(ctx, c)
}
