package push

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// seenFor is how long a message's id is remembered. Pub/Sub repeats messages within
// minutes; one that is played back later tells of a change that the store has by
// then.
const seenFor = 10 * time.Minute

// redisPatience bounds the look for a message's id.
const redisPatience = time.Second

func (h *Handler) seenKey(id string) string { return h.opts.KeyPrefix + "headroom:push:gmail:" + id }

// seen reports whether a message was taken before, by any process. Without Redis
// none was: a sync too many does no harm, a change that is missed does.
func (h *Handler) seen(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, redisPatience)
	defer cancel()
	n, err := h.opts.Redis.Exists(ctx, h.seenKey(id)).Result()
	if err != nil {
		h.opts.Log.Debug("look for a push that came before", zap.Error(err))
	}
	return err == nil && n > 0
}

func (h *Handler) remember(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, redisPatience)
	defer cancel()
	if err := h.opts.Redis.Set(ctx, h.seenKey(id), 1, seenFor).Err(); err != nil {
		h.opts.Log.Debug("remember a push", zap.Error(err))
	}
}
