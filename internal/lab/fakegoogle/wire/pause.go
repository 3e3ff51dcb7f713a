package wire

import (
	"context"
	"time"
)

// Pause passes d, unless life ends or stop is closed first. It reports whether all
// of d passed. A nil stop is never closed.
func Pause(life context.Context, d time.Duration, stop <-chan struct{}) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
	case <-life.Done():
	}
	return false
}
