package workers

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	slices        *prometheus.CounterVec   // by lane, outcome
	sliceSeconds  *prometheus.HistogramVec // by lane
	messages      *prometheus.CounterVec   // by outcome
	requeued      *prometheus.CounterVec   // by limit
	inFlight      prometheus.Gauge
	bytes         prometheus.Counter
	parseTimeouts prometheus.Counter
	panics        prometheus.Counter
	changes       *prometheus.CounterVec // by kind
	reconciled    prometheus.Counter
	renewals      *prometheus.CounterVec // by kind, outcome
	events        *prometheus.CounterVec // by status
	passes        *prometheus.CounterVec // by pass
	troubles      *prometheus.CounterVec // by state
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	return &metrics{
		renewals: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_workers_watch_renewals_total",
			Help: "Attempts to make or renew a watch at Google, by kind and outcome.",
		}, []string{"kind", "outcome"}),
		slices: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_workers_slices_total",
			Help: "Slices run, by lane and by how they ended.",
		}, []string{"lane", "outcome"}),
		sliceSeconds: f.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "headroom_workers_slice_seconds",
			Help:    "How long slices ran, by lane.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 7.5, 10, 30, 60},
		}, []string{"lane"}),
		messages: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_workers_messages_total",
			Help: "Messages whose outcome was committed, by outcome.",
		}, []string{"outcome"}),
		requeued: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_workers_requeued_total",
			Help: "Slices requeued to wait for quota, by the limit that refused them.",
		}, []string{"limit"}),
		inFlight: f.NewGauge(prometheus.GaugeOpts{
			Name: "headroom_workers_fetches_in_flight",
			Help: "Messages being fetched now, including those that wait for quota.",
		}),
		bytes: f.NewCounter(prometheus.CounterOpts{
			Name: "headroom_workers_stored_bytes_total",
			Help: "Bytes of raw messages stored and committed.",
		}),
		parseTimeouts: f.NewCounter(prometheus.CounterOpts{
			Name: "headroom_workers_parse_timeouts_total",
			Help: "Messages whose parser took too long and was abandoned.",
		}),
		panics: f.NewCounter(prometheus.CounterOpts{
			Name: "headroom_workers_panics_total",
			Help: "Panics recovered in slices.",
		}),
		changes: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_workers_history_changes_total",
			Help: "Changes that live sync read in the histories of mailboxes, by kind.",
		}, []string{"kind"}),
		reconciled: f.NewCounter(prometheus.CounterOpts{
			Name: "headroom_workers_reconciliations_total",
			Help: "Mailboxes read as a whole.",
		}),
		events: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_workers_calendar_events_total",
			Help: "Events that calendar sync read and committed, live or cancelled.",
		}, []string{"status"}),
		passes: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_workers_calendar_passes_total",
			Help: "Calendars read to the end, by what was read of them.",
		}, []string{"pass"}),
		troubles: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_workers_calendar_troubles_total",
			Help: "Failed attempts to read a calendar, by the state that they left it in.",
		}, []string{"state"}),
	}
}
