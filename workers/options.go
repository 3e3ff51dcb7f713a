package workers

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"headroom/internal/service"
	"headroom/jobs"
	"headroom/quota"
	"headroom/quota/price"
)

// Options configures [New]. Redis, Store, Blobs, Google, Parser, Log and Registerer
// are required; the rest has defaults.
type Options struct {
	// Redis is the queue's. It should outlast a restart of Redis by itself,
	// since Asynq does not. It is not closed.
	Redis       redis.UniversalClient
	QueuePrefix string       // see jobs.QueueName
	Lanes       []quota.Lane // which lanes to serve; all if empty

	Store  Store
	Blobs  Blobs
	Google Google
	Parser Parser

	// Calendars and CalendarStore are for jobs that sync calendars; there must be
	// none where they are nil.
	Calendars     Calendars
	CalendarStore CalendarStore

	// PricesFunc returns the price list for Gmail of a Google Cloud project, nil if none
	// is known: then whole threads are never asked for. If PricesFunc is nil, none is
	// known.
	PricesFunc func(project string) *price.List
	// MaxMessageBytes is the largest raw message whose body is fetched; 0: any. Of
	// larger messages only the metadata is.
	MaxMessageBytes int64

	Watching Watching // what Google notifies us of

	Concurrency   int           // slices of the backfill lane at once, most of them waiting; 200 if zero
	InFlight      int           // messages of one account fetched at once; 7 if zero
	SliceTime     time.Duration // how long a slice starts new work; 5s if zero
	Lease         time.Duration // how long a dead owner keeps a job; 5s if zero
	TaskTimeout   time.Duration // bound on a slice's whole run; if zero, so long that the slowest fetch ends by itself
	ParseTime     time.Duration // bound on parsing one message; 5s if zero
	FailureBudget int           // failures in a row without progress before a job fails; 20 if zero

	// Scale is how much faster than the clock quota's time runs, against a fake
	// Google: doubled waits for quota end at a minute divided by it. 1 if zero.
	Scale int

	// ShutdownTimeout bounds how long Run takes to return after its context
	// ended; 15s if zero. Slices that stop as asked need about a second.
	ShutdownTimeout time.Duration

	// NowFunc is the clock that rows and waits are compared with; time.Now if nil.
	NowFunc func() time.Time

	Log        *zap.Logger
	Registerer prometheus.Registerer
}

// DefaultTaskTimeout bounds the whole run of a slice that starts new work for
// sliceTime.
func DefaultTaskTimeout(sliceTime time.Duration) time.Duration {
	return max(jobs.DefaultTaskTimeout, 3*sliceTime)
}

// withDefaults returns o with its zero fields filled, or everything that is
// wrong with it.
func (o Options) withDefaults() (Options, error) {
	problems := []error{service.CheckOptions("workers", o, "Redis", "Store", "Blobs", "Google", "Parser", "Log", "Registerer")}
	if o.Watching.Store == nil && o.Watching != (Watching{}) {
		problems = append(problems, errors.New("workers: Options.Watching.Store is required"))
	}

	seen := make(map[quota.Lane]bool)
	for _, lane := range o.Lanes {
		if !lane.Valid() {
			problems = append(problems, fmt.Errorf("workers: Options.Lanes: %q is no lane; there are %v", lane, quota.Lanes))
		}
		if seen[lane] {
			problems = append(problems, fmt.Errorf("workers: Options.Lanes: %q is named twice", lane))
		}
		seen[lane] = true
	}

	if len(o.Lanes) == 0 {
		o.Lanes = quota.Lanes
	}
	if o.PricesFunc == nil {
		o.PricesFunc = func(string) *price.List { return nil }
	}
	if o.NowFunc == nil {
		o.NowFunc = time.Now
	}
	o.Concurrency = cmp.Or(o.Concurrency, 200)
	o.InFlight = cmp.Or(o.InFlight, 7)
	o.SliceTime = cmp.Or(o.SliceTime, 5*time.Second)
	o.Lease = cmp.Or(o.Lease, 5*time.Second)
	o.TaskTimeout = cmp.Or(o.TaskTimeout, DefaultTaskTimeout(o.SliceTime))
	o.ParseTime = cmp.Or(o.ParseTime, 5*time.Second)
	o.Scale = cmp.Or(o.Scale, 1)
	o.FailureBudget = cmp.Or(o.FailureBudget, 20)
	o.ShutdownTimeout = cmp.Or(o.ShutdownTimeout, 15*time.Second)
	return o, errors.Join(problems...)
}
