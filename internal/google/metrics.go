package google

import (
	"github.com/prometheus/client_golang/prometheus"

	"headroom/internal/service"
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
	f := service.NewMetrics(reg)
	return &metrics{
		calls: f.CounterBy("headroom_google_calls_total",
			"Calls of Google's API, by method and by what the answer means for the work.", "method", "outcome"),
		seconds: f.HistogramBy("headroom_google_call_seconds",
			"Duration of calls of Google's API with waits for quota and memory, by method.", prometheus.ExponentialBuckets(0.005, 2.5, 11), "method"),
		tokens: f.CounterBy("headroom_google_token_fetches_total",
			"Access tokens asked for at Google's token endpoint, by outcome.", "outcome"),
		gates: f.GaugeBy("headroom_google_stopped",
			"Causes that stop calls of many accounts at present, by project and by what they stop: its tokens, a domain's delegation, or an API.", "project", "before"),
		bodyBytes: f.Gauge("headroom_google_body_bytes",
			"Memory set aside for message bodies that are being fetched, in bytes."),
		bodyWaits: f.Counter("headroom_google_body_waits_total",
			"Times that a fetch waited for memory to hold its message."),
		fetchBytes: f.Counter("headroom_google_fetched_bytes_total",
			"Bytes of raw messages fetched."),
		unreadable: f.CounterBy("headroom_google_unreadable_fields_total",
			"Fields and items of Google's answers that could not be read and were left out, by method.", "method"),
	}
}
