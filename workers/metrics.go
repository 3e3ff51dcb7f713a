package workers

import (
	"github.com/prometheus/client_golang/prometheus"

	"headroom/internal/service"
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
	f := service.NewMetrics(reg)
	return &metrics{
		renewals: f.CounterBy("headroom_workers_watch_renewals_total",
			"Attempts to make or renew a watch at Google, by kind and outcome.", "kind", "outcome"),
		slices: f.CounterBy("headroom_workers_slices_total",
			"Slices run, by lane and by how they ended.", "lane", "outcome"),
		sliceSeconds: f.HistogramBy("headroom_workers_slice_seconds",
			"How long slices ran, by lane.", []float64{.05, .1, .25, .5, 1, 2.5, 5, 7.5, 10, 30, 60}, "lane"),
		messages: f.CounterBy("headroom_workers_messages_total",
			"Messages whose outcome was committed, by outcome.", "outcome"),
		requeued: f.CounterBy("headroom_workers_requeued_total",
			"Slices requeued to wait for quota, by the limit that refused them.", "limit"),
		inFlight: f.Gauge("headroom_workers_fetches_in_flight",
			"Messages being fetched now, including those that wait for quota."),
		bytes: f.Counter("headroom_workers_stored_bytes_total",
			"Bytes of raw messages stored and committed."),
		parseTimeouts: f.Counter("headroom_workers_parse_timeouts_total",
			"Messages whose parser took too long and was abandoned."),
		panics: f.Counter("headroom_workers_panics_total",
			"Panics recovered in slices."),
		changes: f.CounterBy("headroom_workers_history_changes_total",
			"Changes that live sync read in the histories of mailboxes, by kind.", "kind"),
		reconciled: f.Counter("headroom_workers_reconciliations_total",
			"Mailboxes read as a whole."),
		events: f.CounterBy("headroom_workers_calendar_events_total",
			"Events that calendar sync read and committed, live or cancelled.", "status"),
		passes: f.CounterBy("headroom_workers_calendar_passes_total",
			"Calendars read to the end, by what was read of them.", "pass"),
		troubles: f.CounterBy("headroom_workers_calendar_troubles_total",
			"Failed attempts to read a calendar, by the state that they left it in.", "state"),
	}
}
