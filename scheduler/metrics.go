package scheduler

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"headroom/internal/service"
	"headroom/jobs"
)

type metrics struct {
	rescues  *prometheus.CounterVec
	swept    *prometheus.CounterVec
	repaired *prometheus.CounterVec
	paused   *prometheus.GaugeVec
	ticks    *prometheus.CounterVec
	seconds  prometheus.Histogram
	live     prometheus.Gauge
	overdue  prometheus.Gauge

	stuck, stuckSeconds *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := service.NewMetrics(reg)
	m := &metrics{
		rescues: f.CounterBy("headroom_scheduler_rescues_total",
			"Jobs and queues rescued, by cause.", "cause"),
		swept: f.CounterBy("headroom_scheduler_swept_tasks_total",
			"Tasks removed because they meant nothing any more, by Asynq's state, or because their message was gone (ghost).", "state"),
		repaired: f.CounterBy("headroom_scheduler_repaired_moments_total",
			"Stored moments that were further in the future than any rule sets them, because a clock was ahead, and were set back.", "what"),
		paused: f.GaugeBy("headroom_scheduler_queue_paused",
			"1 while somebody has paused the queue in Asynq, else 0.", "queue"),
		ticks: f.CounterBy("headroom_scheduler_ticks_total",
			"Checks for lost work, by outcome.", "outcome"),
		seconds: f.Histogram("headroom_scheduler_tick_seconds",
			"How long a check for lost work took.", prometheus.ExponentialBuckets(0.001, 4, 8)),
		live: f.Gauge("headroom_scheduler_live_jobs",
			"Jobs that were not in a terminal state at the last check."),
		overdue: f.Gauge("headroom_scheduler_overdue_jobs",
			"Waiting jobs whose moment passed over 30 seconds ago and whose task still waits in the queue."),
	}
	m.stuck = f.GaugeBy("headroom_scheduler_faulted_jobs",
		"Jobs whose calls have all failed for over a minute, by project. They wait for the fault to pass.", "project")
	m.stuckSeconds = f.GaugeBy("headroom_scheduler_faulted_seconds",
		"For how long all calls of the job that has waited longest for a fault to pass have failed, by project.", "project")
	for _, c := range causes { // shown as 0 before the first rescue
		m.rescues.WithLabelValues(string(c))
	}
	for _, state := range append([]string{"ghost"}, sweptStates...) {
		m.swept.WithLabelValues(state)
	}
	return m
}

type admissionMetrics struct {
	taken, waiting *prometheus.GaugeVec
	admitted       *prometheus.CounterVec
	errors         prometheus.Counter
	seconds        prometheus.Histogram
}

func newAdmissionMetrics(reg prometheus.Registerer) *admissionMetrics {
	f := service.NewMetrics(reg)
	return &admissionMetrics{
		taken: f.GaugeBy("headroom_scheduler_places_taken",
			"Admitted backfills, by project.", "project"),
		waiting: f.GaugeBy("headroom_scheduler_places_wanted",
			"Backfills that wait for admission, by project.", "project"),
		admitted: f.CounterBy("headroom_scheduler_admissions_total",
			"Backfills admitted, by project.", "project"),
		errors: f.Counter("headroom_scheduler_admission_errors_total",
			"Failed rounds of admission."),
		seconds: f.Histogram("headroom_scheduler_admission_seconds",
			"How long a round of admission took.", prometheus.ExponentialBuckets(0.001, 4, 8)),
	}
}

type scheduleMetrics struct {
	runs, missed *prometheus.CounterVec
	delay        *prometheus.HistogramVec
	lag, streams *prometheus.GaugeVec
	errors       prometheus.Counter
}

func newScheduleMetrics(reg prometheus.Registerer) *scheduleMetrics {
	f := service.NewMetrics(reg)
	m := &scheduleMetrics{
		runs: f.CounterBy("headroom_scheduler_schedule_runs_total",
			"Runs of schedules by this process, on time or to catch up, by what they came to.", "schedule", "timing", "result"),
		missed: f.CounterBy("headroom_scheduler_schedule_missed_slots_total",
			"Moments of schedules that passed without a run, because no scheduler ran.", "schedule"),
		delay: f.HistogramBy("headroom_scheduler_schedule_delay_seconds",
			"How long after it was due a run of a schedule began.", []float64{0.5, 1, 2, 5, 10, 30, 60, 300, 600, 3600}, "schedule"),
		lag: f.GaugeBy("headroom_scheduler_schedule_lag_seconds",
			"For how long the run that has waited longest has been due; 0 when none waits.", "schedule"),
		streams: f.GaugeBy("headroom_scheduler_schedule_streams",
			"Accounts that a schedule runs for, without those that are paused.", "schedule"),
		errors: f.Counter("headroom_scheduler_schedule_errors_total",
			"Failed checks for due runs of schedules."),
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
