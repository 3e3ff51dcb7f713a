package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"headroom/jobs"
)

// envelope is a message as a push subscription of Pub/Sub sends it.
type envelope struct {
	Message struct {
		Data      []byte `json:"data"` // base64
		MessageID string `json:"messageId"`
	} `json:"message"`
	Subscription string `json:"subscription"`
}

// notice is what Gmail publishes.
type notice struct {
	EmailAddress string    `json:"emailAddress"`
	HistoryID    historyID `json:"historyId"`
}

// historyID is a number, or, as in Google's documentation, one in quotes.
type historyID uint64

// UnmarshalJSON implements [json.Unmarshaler].
func (h *historyID) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseUint(strings.Trim(string(text), `"`), 10, 64)
	*h = historyID(n)
	return err
}

// longestID bounds the ids that are remembered.
const longestID = 200

// takeGmail asks for the sync that a message of Gmail's topic is about. The token
// is looked at before the body is read.
func (h *Handler) takeGmail(ctx context.Context, r *http.Request) (jobs.PushOutcome, error) {
	if err := h.verifier.verify(ctx, r.Header.Get("Authorization")); err != nil {
		return "", err
	}
	e, n, err := readNotice(r.Body)
	if err != nil {
		return "", err
	}
	if e.Subscription != h.opts.Gmail.Subscription {
		return "", forged(http.StatusForbidden, fmt.Errorf("the subscription is %q, not ours", clip(e.Subscription)))
	}
	if h.seen(ctx, e.Message.MessageID) {
		return jobs.PushRepeated, nil
	}
	outcome, err := h.opts.Store.PushMail(ctx, n.EmailAddress, uint64(n.HistoryID))
	if err != nil {
		return "", err
	}
	// Not before: a message whose sync was not asked for must be taken again.
	h.remember(ctx, e.Message.MessageID)
	return outcome, nil
}

func readNotice(body io.Reader) (e envelope, n notice, err error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return e, n, malformedBody(err)
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return e, n, malformed(fmt.Errorf("read the envelope: %w", err))
	}
	if err := json.Unmarshal(e.Message.Data, &n); err != nil {
		return e, n, malformed(fmt.Errorf("read the message's data: %w", err))
	}
	if n.EmailAddress == "" || n.HistoryID == 0 || e.Message.MessageID == "" || len(e.Message.MessageID) > longestID {
		return e, n, malformed(errors.New("the message lacks an id, an address or a history id"))
	}
	return e, n, nil
}

// malformedBody is the error of a body that did not come in whole; one that is too
// long is another matter.
func malformedBody(err error) error {
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return err
	}
	return malformed(fmt.Errorf("read the body: %w", err))
}

func clip(s string) string { return s[:min(len(s), longestID)] }
