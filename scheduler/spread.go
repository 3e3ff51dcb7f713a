package scheduler

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"headroom/jobs"
)

// A place says where within an interval an account's runs are: two shares of it,
// from 0 to below 1. They are hashes, and so the same for every process and after
// every start, and unlike those of other accounts.
type place struct {
	offset float64 // of runs that are on time
	phase  float64 // of runs that catch up; another, so that the two do not pile up
}

func placeOf(s jobs.Schedule, account string) place {
	sum := sha256.Sum256([]byte(string(s) + "\x00" + account))
	return place{fraction(sum[0:8]), fraction(sum[8:16])}
}

func fraction(b []byte) float64 { return float64(binary.BigEndian.Uint64(b)>>11) / (1 << 53) }

// of is a share of an interval, in whole milliseconds.
func of(share float64, d time.Duration) time.Duration {
	return time.Duration(share * float64(d)).Truncate(time.Millisecond)
}

// nextPhase is the first moment after now that has its share of a window behind
// it, windows being counted from 1970. So it needs no memory: a process that
// starts again comes to the same moment, as does another one.
func nextPhase(now time.Time, window time.Duration, share float64) time.Time {
	begin := every(window).next(now).Add(-window)
	at := begin.Add(of(share, window))
	if !at.After(now) {
		at = at.Add(window)
	}
	return at
}
