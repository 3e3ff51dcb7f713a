package app

import (
	"context"
	"time"

	"headroom/jobs"
)

func (b apiBackend) Schedules(ctx context.Context, scope jobs.ScheduleScope) ([]jobs.ScheduleLine, error) {
	return ScheduleLines(ctx, b.cfg, b.store, scope, time.Now())
}

func (b apiBackend) NextRuns(ctx context.Context, schedule jobs.Schedule, account string, n int) ([]jobs.ScheduledRun, error) {
	return NextRuns(ctx, b.cfg, b.store, schedule, account, time.Now(), n)
}

func (b apiBackend) RunSchedule(ctx context.Context, schedule jobs.Schedule, scope jobs.ScheduleScope) (jobs.ScheduleRun, error) {
	return RunScheduleNow(ctx, b.cfg, b.store, schedule, scope, time.Now())
}

func (b apiBackend) PauseSchedule(ctx context.Context, schedule jobs.Schedule, scope jobs.ScheduleScope) (jobs.SchedulePausing, error) {
	return PauseSchedule(ctx, b.cfg, b.store, schedule, scope)
}

func (b apiBackend) ResumeSchedule(ctx context.Context, schedule jobs.Schedule, scope jobs.ScheduleScope) (jobs.SchedulePausing, error) {
	return ResumeSchedule(ctx, b.cfg, b.store, schedule, scope)
}
