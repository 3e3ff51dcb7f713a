package google

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	calls      *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	gates      *prometheus.GaugeVec
	tokens     *prometheus.CounterVec
	bodyBytes  prometheus.Gauge
	bodyWaits  prometheus.Counter
	fetchBytes prometheus.Counter
	unreadable *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	return &metrics{
		calls: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_google_calls_total",
			Help: "Calls of Google's API, by method and by what the answer means for the work.",
		}, []string{"method", "outcome"}),
		seconds: f.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "headroom_google_call_seconds",
			Help:    "Duration of calls of Google's API with waits for quota and memory, by method.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2.5, 11),
		}, []string{"method"}),
		tokens: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_google_token_fetches_total",
			Help: "Access tokens asked for at Google's token endpoint, by outcome.",
		}, []string{"outcome"}),
		gates: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "headroom_google_stopped",
			Help: "Causes that stop calls of many accounts at present, by project and by what they stop: its tokens, a domain's delegation, or an API.",
		}, []string{"project", "before"}),
		bodyBytes: f.NewGauge(prometheus.GaugeOpts{
			Name: "headroom_google_body_bytes",
			Help: "Memory set aside for message bodies that are being fetched, in bytes.",
		}),
		bodyWaits: f.NewCounter(prometheus.CounterOpts{
			Name: "headroom_google_body_waits_total",
			Help: "Times that a fetch waited for memory to hold its message.",
		}),
		fetchBytes: f.NewCounter(prometheus.CounterOpts{
			Name: "headroom_google_fetched_bytes_total",
			Help: "Bytes of raw messages fetched.",
		}),
		unreadable: f.NewCounterVec(prometheus.CounterOpts{
			Name: "headroom_google_unreadable_fields_total",
			Help: "Fields and items of Google's answers that could not be read and were left out, by method.",
		}, []string{"method"}),
	}
}
