package scheduler

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"headroom/jobs"
)

type scheduleMetrics struct {
	runs, missed *prometheus.CounterVec
	delay        *prometheus.HistogramVec
	lag, streams *prometheus.GaugeVec
	errors       prometheus.Counter
}

func newScheduleMetrics(reg prometheus.Registerer) *scheduleMetrics {
	f := promauto.With(reg)
	m := &scheduleMetrics{
		runs: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_scheduler_schedule_runs_total",
			Help: "Runs of schedules by this process, on time or to catch up, by what they came to.",
		}, []string{"schedule", "timing", "result"}),
		missed: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_scheduler_schedule_missed_slots_total",
			Help: "Moments of schedules that passed without a run, because no scheduler ran.",
		}, []string{"schedule"}),
		delay: f.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "headroom_scheduler_schedule_delay_seconds",
			Help:    "How long after it was due a run of a schedule began.",
			Buckets: []float64{0.5, 1, 2, 5, 10, 30, 60, 300, 600, 3600},
		}, []string{"schedule"}),
		lag: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "headroom_scheduler_schedule_lag_seconds",
			Help: "How long the run has been due that has waited longest, 0 when none waits.",
		}, []string{"schedule"}),
		streams: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "headroom_scheduler_schedule_streams",
			Help: "Accounts that a schedule runs for, without those that are paused.",
		}, []string{"schedule"}),
		errors: f.NewCounter(prometheus.CounterOpts{
			Name: "headroom_scheduler_schedule_errors_total",
			Help: "Looks for due runs of schedules that failed.",
		}),
	}
	for _, s := range jobs.Schedules { // shown as 0 before the first
		m.missed.WithLabelValues(string(s))
	}
	return m
}

// note counts a run.
func (m *scheduleMetrics) note(c jobs.SlotClaim, due time.Time, result jobs.SlotResult) {
	when := "on-time"
	if c.CatchUp {
		when = "catch-up"
	}
	m.runs.WithLabelValues(string(c.Schedule), when, string(result)).Inc()
	m.missed.WithLabelValues(string(c.Schedule)).Add(float64(c.Missed))
	m.delay.WithLabelValues(string(c.Schedule)).Observe(max(0, c.At.Sub(due).Seconds()))
}
