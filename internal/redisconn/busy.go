package redisconn

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// outlastBusy repeats a command that Redis refused because a script holds it up:
// the client repeats what other refusals of the moment ask for, but not this.
type outlastBusy struct{ options *redis.Options }

// DialHook implements [redis.Hook].
func (outlastBusy) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook implements [redis.Hook].
func (outlastBusy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook implements [redis.Hook].
func (o outlastBusy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		wait := o.options.MinRetryBackoff
		for try := 0; ; try++ {
			err := next(ctx, cmd)
			if !redis.HasErrorPrefix(err, "BUSY ") || try == o.options.MaxRetries {
				return err
			}
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return err
			}
			wait = min(2*wait, o.options.MaxRetryBackoff)
		}
	}
}
