package workers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hibiken/asynq"

	"headroom/jobs"
)

// maxBackoff bounds every wait of our own making. A moment that the ledger or
// Google named may lie beyond it.
const maxBackoff = time.Minute

// ledgerBackoff bounds the waits for a ledger that does not answer: to ask it costs
// nothing, and work is to continue within seconds once it answers.
const ledgerBackoff = 5 * time.Second

// A RequeueError tells Asynq to run the task again later. It is how a job waits, for
// quota, for a deferred item or for a fault to pass, and is no failure: it spends no
// retry and counts in none of Asynq's statistics. Its text is what Asynq's web UI shows
// for the task.
type RequeueError struct {
	Job   string        // the job's id
	For   string        // the limit or the fault that it waits for
	Until time.Time     // when it may continue
	Delay time.Duration // from the decision to Until
}

func (e *RequeueError) Error() string {
	return fmt.Sprintf("%s waits for %s until %s (%s)", e.Job, e.For,
		e.Until.UTC().Format("2006-01-02T15:04:05.000Z"), e.Delay.Round(time.Millisecond))
}

// isFailure tells Asynq which errors count against a task. Waiting does not.
func isFailure(err error) bool {
	_, waits := errors.AsType[*RequeueError](err)
	return err != nil && !waits
}

// retryDelay tells Asynq when to run a task again: at the moment that a [RequeueError]
// names, or, after a failure (the store is out of reach, the task's lease in Asynq was
// lost), after a back-off that doubles with each.
func retryDelay(now func() time.Time) asynq.RetryDelayFunc {
	return func(retried int, err error, _ *asynq.Task) time.Duration {
		if later, ok := errors.AsType[*RequeueError](err); ok {
			return requeueDelay(later.Until.Sub(now()))
		}
		return requeueDelay(backoff(time.Second, retried))
	}
}

// requeueDelay is what to ask of Asynq so that a task never runs before wait has
// passed, and at most some two seconds after. Asynq keeps due times in whole
// seconds, rounded down, hence the second; the jitter keeps tasks that wait for
// the same moment from coming back in the same instant.
func requeueDelay(wait time.Duration) time.Duration {
	wait = max(wait, 0)
	return wait + time.Second + jitter(min(time.Second, wait/4))
}

// backoff is first, doubled n times, at most [maxBackoff].
func backoff(first time.Duration, n int) time.Duration { return jobs.Doubled(first, n, maxBackoff) }

// jitter is a random duration in [0, most].
func jitter(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return rand.N(most + 1)
}
