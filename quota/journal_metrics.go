package quota

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"headroom/quota/price"
)

// journalMetrics are what a journal sees in passing: how full windows are, and
// what it had no room for.
type journalMetrics struct {
	users    *prometheus.HistogramVec
	projects *prometheus.GaugeVec
	learned  *prometheus.GaugeVec
	dropped  prometheus.Counter
}

func newJournalMetrics(reg prometheus.Registerer) *journalMetrics {
	f := promauto.With(reg)
	return &journalMetrics{
		users: f.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "headroom_quota_user_headroom_ratio",
			Help:    "Share of a user's limit that was free after a call, of the users that spend, looked at four times a second, by limit.",
			Buckets: []float64{0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.5, 0.75, 1},
		}, []string{"limit"}),
		projects: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "headroom_quota_project_headroom_ratio",
			Help: "Share of a project's limit that was free after the process' last call, by project, API and limit.",
		}, []string{"project", "api", "limit"}),
		learned: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "headroom_quota_learned_share",
			Help: "Least share of their limits that those may use whom Google refused, as far as this process was refused, by API and scope; 1: all.",
		}, []string{"api", "scope"}),
		dropped: f.NewCounter(prometheus.CounterOpts{
			Name: "headroom_quota_journal_dropped_total",
			Help: "Entries of the journal that memory had no room for.",
		}),
	}
}

// headroom notes how much of each limit a page's last decision left free.
func (m *journalMetrics) headroom(key pageKey, project int, usage []Usage) {
	for i, u := range usage {
		free := max(0, 1-float64(u.Used)/float64(u.Units))
		switch {
		case i < project:
			m.projects.WithLabelValues(key.project, key.api, u.Limit).Set(free)
		case u.Limit == price.ProjectDay:
			m.projects.WithLabelValues(key.project, key.api, u.Limit).Set(free)
		default:
			m.users.WithLabelValues(u.Limit).Observe(free)
		}
	}
}
