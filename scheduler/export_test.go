package scheduler

import "context"

// Tick looks once.
func (s *Scheduler) Tick(ctx context.Context) error { return s.tick(ctx) }
