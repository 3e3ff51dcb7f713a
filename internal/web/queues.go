package web

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"headroom/jobs"
)

// scrapeTimeout bounds how long Redis may take to return the sizes.
const scrapeTimeout = 2 * time.Second

// states are the states of a task in Asynq, and how Redis counts them.
var states = []struct{ name, count string }{
	{"pending", "LLEN"}, {"active", "LLEN"}, {"scheduled", "ZCARD"},
	{"retry", "ZCARD"}, {"archived", "ZCARD"}, {"completed", "ZCARD"},
}

// queueSize is the size of one queue.
type queueSize struct {
	Queue             string
	Tasks             map[string]int64 // by state
	Processed, Failed int64            // since the queue was created
	Oldest            time.Duration    // how long the first pending task has waited
}

// readQueues reads the sizes of all queues. Unlike Asynq's inspector it takes
// two round trips whatever the number of queues, reads nothing that grows with
// them, and a broken task breaks nothing.
func readQueues(ctx context.Context, rdb redis.UniversalClient, queues []string) ([]queueSize, error) {
	counts := make([][]*redis.Cmd, len(queues))
	totals := make([][2]*redis.StringCmd, len(queues))
	heads := make([]*redis.StringCmd, len(queues))
	_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, q := range queues {
			for _, s := range states {
				counts[i] = append(counts[i], p.Do(ctx, s.count, jobs.AsynqKey(q, s.name)))
			}
			totals[i] = [2]*redis.StringCmd{p.Get(ctx, jobs.AsynqKey(q, "processed")), p.Get(ctx, jobs.AsynqKey(q, "failed"))}
			heads[i] = p.LIndex(ctx, jobs.AsynqKey(q, "pending"), -1)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	sizes := make([]queueSize, len(queues))
	for i, q := range queues {
		sizes[i] = queueSize{Queue: q, Tasks: map[string]int64{}, Processed: number(totals[i][0]), Failed: number(totals[i][1])}
		for j, s := range states {
			n, _ := counts[i][j].Int64() // a key of a wrong type counts as empty
			sizes[i].Tasks[s.name] = n
		}
	}
	readOldest(ctx, rdb, sizes, heads)
	return sizes, nil
}

// readOldest finds how long the first task of each queue has been pending. It leaves
// unreadable values at zero.
func readOldest(ctx context.Context, rdb redis.UniversalClient, sizes []queueSize, heads []*redis.StringCmd) {
	since := make([]*redis.StringCmd, len(sizes))
	_, _ = rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range sizes {
			if id := heads[i].Val(); id != "" {
				since[i] = p.HGet(ctx, jobs.AsynqKey(sizes[i].Queue, "t:"+id), "pending_since")
			}
		}
		return nil
	})
	for i, cmd := range since {
		if cmd == nil {
			continue
		}
		if at := number(cmd); at > 0 {
			sizes[i].Oldest = max(0, time.Since(time.Unix(0, at)))
		}
	}
}

func number(cmd *redis.StringCmd) int64 {
	n, err := strconv.ParseInt(cmd.Val(), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// queueCollector exports the sizes of the queues to Prometheus. If Redis does not
// answer, the scrape succeeds without them, and headroom_queue_up is 0.
type queueCollector struct {
	rdb    redis.UniversalClient
	queues []string
	log    *zap.Logger

	up, tasks, oldest, processed, failed *prometheus.Desc
}

func newQueueCollector(rdb redis.UniversalClient, queues []string, log *zap.Logger) *queueCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("headroom_queue_"+name, help, labels, nil)
	}
	return &queueCollector{
		rdb: rdb, queues: queues, log: log,
		up:        desc("up", "Whether Redis told the sizes of the queues (1) or did not (0)."),
		tasks:     desc("tasks", "Tasks in the queue, by Asynq's state.", "queue", "state"),
		oldest:    desc("oldest_pending_seconds", "How long the first pending task has waited.", "queue"),
		processed: desc("processed_total", "Tasks that ended since the queue exists. Tasks put back for quota do not count.", "queue"),
		failed:    desc("failed_total", "Tasks that ended in an error since the queue exists.", "queue"),
	}
}

// Describe implements [prometheus.Collector].
func (c *queueCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.up, c.tasks, c.oldest, c.processed, c.failed} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector], which has no context to pass on.
func (c *queueCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	sizes, err := readQueues(ctx, c.rdb, c.queues)
	up := 1.0
	if err != nil {
		up = 0
		c.log.Warn("sizes of the queues unknown", zap.Error(err))
	}
	ch <- prometheus.MustNewConstMetric(c.up, prometheus.GaugeValue, up)
	for _, s := range sizes {
		for state, n := range s.Tasks {
			ch <- prometheus.MustNewConstMetric(c.tasks, prometheus.GaugeValue, float64(n), s.Queue, state)
		}
		ch <- prometheus.MustNewConstMetric(c.oldest, prometheus.GaugeValue, s.Oldest.Seconds(), s.Queue)
		ch <- prometheus.MustNewConstMetric(c.processed, prometheus.CounterValue, float64(s.Processed), s.Queue)
		ch <- prometheus.MustNewConstMetric(c.failed, prometheus.CounterValue, float64(s.Failed), s.Queue)
	}
}
