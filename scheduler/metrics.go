package scheduler

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

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
	f := promauto.With(reg)
	m := &metrics{
		rescues: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_scheduler_rescues_total",
			Help: "Jobs and queues rescued, by cause.",
		}, []string{"cause"}),
		swept: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_scheduler_swept_tasks_total",
			Help: "Tasks removed because they meant nothing any more, by Asynq's state, or because their message was gone (ghost).",
		}, []string{"state"}),
		repaired: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_scheduler_repaired_moments_total",
			Help: "Stored moments that were further in the future than any rule sets them, because a clock was ahead, and were set back.",
		}, []string{"what"}),
		paused: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "headroom_scheduler_queue_paused",
			Help: "1 while somebody has paused the queue in Asynq, else 0.",
		}, []string{"queue"}),
		ticks: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_scheduler_ticks_total",
			Help: "Checks for lost work, by outcome.",
		}, []string{"outcome"}),
		seconds: f.NewHistogram(prometheus.HistogramOpts{
			Name:    "headroom_scheduler_tick_seconds",
			Help:    "How long a check for lost work took.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}),
		live: f.NewGauge(prometheus.GaugeOpts{
			Name: "headroom_scheduler_live_jobs",
			Help: "Jobs that were not in a terminal state at the last check.",
		}),
		overdue: f.NewGauge(prometheus.GaugeOpts{
			Name: "headroom_scheduler_overdue_jobs",
			Help: "Waiting jobs whose moment passed over 30 seconds ago and whose task still waits in the queue.",
		}),
	}
	m.stuck = f.NewGaugeVec(prometheus.GaugeOpts{
		Name: "headroom_scheduler_faulted_jobs",
		Help: "Jobs whose calls have all failed for over a minute, by project. They wait for the fault to pass.",
	}, []string{"project"})
	m.stuckSeconds = f.NewGaugeVec(prometheus.GaugeOpts{
		Name: "headroom_scheduler_faulted_seconds",
		Help: "For how long all calls of the job that has waited longest for a fault to pass have failed, by project.",
	}, []string{"project"})
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
	f := promauto.With(reg)
	return &admissionMetrics{
		taken: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "headroom_scheduler_places_taken",
			Help: "Admitted backfills, by project.",
		}, []string{"project"}),
		waiting: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "headroom_scheduler_places_wanted",
			Help: "Backfills that wait for admission, by project.",
		}, []string{"project"}),
		admitted: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_scheduler_admissions_total",
			Help: "Backfills admitted, by project.",
		}, []string{"project"}),
		errors: f.NewCounter(prometheus.CounterOpts{
			Name: "headroom_scheduler_admission_errors_total",
			Help: "Failed rounds of admission.",
		}),
		seconds: f.NewHistogram(prometheus.HistogramOpts{
			Name:    "headroom_scheduler_admission_seconds",
			Help:    "How long a round of admission took.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}),
	}
}

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
			Help: "For how long the run that has waited longest has been due; 0 when none waits.",
		}, []string{"schedule"}),
		streams: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "headroom_scheduler_schedule_streams",
			Help: "Accounts that a schedule runs for, without those that are paused.",
		}, []string{"schedule"}),
		errors: f.NewCounter(prometheus.CounterOpts{
			Name: "headroom_scheduler_schedule_errors_total",
			Help: "Failed checks for due runs of schedules.",
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
