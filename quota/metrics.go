package quota

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	decisions      *prometheus.CounterVec
	units          *prometheus.CounterVec
	unknownMethods *prometheus.CounterVec
	roundTrip      prometheus.Histogram
	waits          *prometheus.HistogramVec
	// absurdDeadlines is counted where an answer is read on its way, once for each.
	absurdDeadlines *prometheus.CounterVec
	refusals        *prometheus.CounterVec
	lowered         *prometheus.CounterVec
	bytes           *prometheus.CounterVec

	failOpenCalls, failOpenUnits, failOpenSeconds prometheus.Counter
	cooldowns                                     *prometheus.HistogramVec
	closings                                      *prometheus.CounterVec
	overBudget                                    *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	return &metrics{
		decisions: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_quota_decisions_total",
			Help: "Decisions of the ledger, by lane, outcome, the limit that bound and the part of it that did.",
		}, []string{"lane", "outcome", "limit", "bound"}),
		units: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_quota_units_total",
			Help: "Units charged, by lane.",
		}, []string{"lane"}),
		unknownMethods: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_quota_unknown_methods_total",
			Help: "Calls of methods that the price list does not know, charged as the dearest, by API.",
		}, []string{"api"}),
		roundTrip: f.NewHistogram(prometheus.HistogramOpts{
			Name:    "headroom_quota_round_trip_seconds",
			Help:    "Time that the ledger took to answer.",
			Buckets: prometheus.ExponentialBuckets(0.0002, 2.5, 10),
		}),
		waits: f.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "headroom_quota_wait_seconds",
			Help:    "Time that calls waited in place for quota, by lane.",
			Buckets: prometheus.ExponentialBuckets(0.001, 3, 9),
		}, []string{"lane"}),
		absurdDeadlines: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_quota_absurd_deadlines_total",
			Help: "Google's refusals that named a moment that was not believed, by scope.",
		}, []string{"scope"}),
		failOpenCalls: f.NewCounter(prometheus.CounterOpts{
			Name: "headroom_quota_fail_open_calls_total",
			Help: "Interactive calls that the process let in by itself because Redis did not answer.",
		}),
		failOpenUnits: f.NewCounter(prometheus.CounterOpts{
			Name: "headroom_quota_fail_open_units_total",
			Help: "Units of the calls that the process let in by itself.",
		}),
		failOpenSeconds: f.NewCounter(prometheus.CounterOpts{
			Name: "headroom_quota_fail_open_seconds_total",
			Help: "Time that Redis was not asked because it did not answer, as far as calls came, summed over projects and APIs.",
		}),
		cooldowns: f.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "headroom_quota_cooldown_seconds",
			Help:    "For how long Google's refusals closed a user's or a project's limits, by API and scope.",
			Buckets: []float64{1, 5, 15, 65, 300, 900, 3600, 4 * 3600, 24 * 3600},
		}, []string{"api", "scope"}),
		closings: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_quota_cooldowns_started_total",
			Help: "Cool-downs that Google's refusals began, each counted once by the process that was refused first, by API and kind of limit.",
		}, []string{"api", "scope"}),
		overBudget: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_quota_over_budget_units_total",
			Help: "Units charged although the project's budget for the day was spent, by project and API.",
		}, []string{"project", "api"}),
		refusals: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_quota_refusals_total",
			Help: "Calls that Google refused for quota, those in batches included, by API and scope.",
		}, []string{"api", "scope"}),
		lowered: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_quota_in_flight_lowered_total",
			Help: "How often Google's refusals lowered how many calls of a user may be in flight, by API.",
		}, []string{"api"}),
		bytes: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_quota_bytes_total",
			Help: "Bytes of answers, counted for their users' day, by lane.",
		}, []string{"lane"}),
	}
}

func (m *metrics) count(c Caller, outcome, limit string) {
	m.decisions.WithLabelValues(string(c.Lane), outcome, limit, "").Inc()
}

func (m *metrics) denied(c Caller, limit string, bound Bound) {
	m.decisions.WithLabelValues(string(c.Lane), "denied", limit, string(bound)).Inc()
}
