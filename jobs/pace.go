package jobs

import "time"

const (
	// LeastSpeed is how fast, in bytes a second, an answer of Google's must come
	// that takes longer than a few minutes.
	LeastSpeed = 16 << 10
	// LongestFetch is how long the largest message may take: as long as it comes at
	// [LeastSpeed], about 60 MB of mail, which are a third more on their way.
	LongestFetch = 90 * time.Minute
	// DefaultTaskTimeout bounds a slice's whole run. A message has as long as it
	// makes progress, so this is only for what neither ends nor goes on.
	DefaultTaskTimeout = LongestFetch + 2*time.Minute
)

// Doubled is the wait that begins with first and doubles n times, at most up to limit;
// first itself if that is longer.
func Doubled[N int | int64](first time.Duration, n N, limit time.Duration) time.Duration {
	wait := first
	for ; n > 0 && wait < limit; n-- {
		wait *= 2
	}
	return min(wait, max(limit, first))
}
