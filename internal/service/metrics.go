package service

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics makes metrics by name, help text and labels, and registers them. It panics
// where a metric of the name is registered already.
type Metrics struct{ factory promauto.Factory }

// NewMetrics returns a Metrics for a registry. If reg is nil, nothing is registered.
func NewMetrics(reg prometheus.Registerer) Metrics { return Metrics{promauto.With(reg)} }

// Counter makes a counter.
func (m Metrics) Counter(name, help string) prometheus.Counter {
	return m.factory.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

// CounterBy makes a counter for each value of labels.
func (m Metrics) CounterBy(name, help string, labels ...string) *prometheus.CounterVec {
	return m.factory.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// Gauge makes a gauge.
func (m Metrics) Gauge(name, help string) prometheus.Gauge {
	return m.factory.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

// GaugeBy makes a gauge for each value of labels.
func (m Metrics) GaugeBy(name, help string, labels ...string) *prometheus.GaugeVec {
	return m.factory.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

// Histogram makes a histogram.
func (m Metrics) Histogram(name, help string, buckets []float64) prometheus.Histogram {
	return m.factory.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

// HistogramBy makes a histogram for each value of labels.
func (m Metrics) HistogramBy(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return m.factory.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}
