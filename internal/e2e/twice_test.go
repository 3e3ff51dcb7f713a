package e2e_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"headroom/internal/app"
	"headroom/jobs"
)

// TestTasksDeliveredTwiceCountOnce: the queue delivers every slice twice and more, at
// once and later, to two workers; and the profile promises more than the listing has.
func TestTasksDeliveredTwiceCountOnce(t *testing.T) {
	t.Parallel()
	const messages, spam = 200, 10
	r := newSite(t, messages)
	r.cfg.Worker.Slice = 300 * time.Millisecond // so that there are many
	r.cfg.Worker.Lease = time.Second            // a copy of a slice at work comes back when it ends
	for range spam {
		r.fake.Mailbox(ann).Add(mail("spam"), "SPAM")
	}
	r.run(app.RoleScheduler)
	r.run(app.RoleWorker)
	r.run(app.RoleWorker)
	rdb := redis.NewClient(&redis.Options{Addr: r.redis.Addr})
	defer rdb.Close()
	client := asynq.NewClientFromRedisClient(rdb)
	s := r.open()
	r.startBackfill()
	var last jobs.Progress
	copies := map[jobs.TaskRef]int{}
	j := r.wait(s, "ended", func(j jobs.Job) bool {
		if ref := j.Ref(); copies[ref] < 3 { // some milliseconds apart
			copies[ref]++
			payload, err := json.Marshal(ref)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.EnqueueContext(t.Context(), asynq.NewTask(jobs.TaskType, payload), asynq.Queue("backfill")); err != nil {
				t.Fatal(err)
			}
		}
		if p := j.Progress; p.Done() < last.Done() || p.Done() > p.Listed {
			t.Errorf("progress = %+v after %+v", p, last)
		}
		last = j.Progress
		return j.State.Terminal()
	})
	p := j.Progress
	if j.State != jobs.Completed || p.Stored != messages || p.Listed != messages || p.Done() != messages || p.Expected != messages+spam || j.Slice < 2 {
		t.Errorf("job = %+v, want %d of %d over several slices", j, messages, messages)
	}
	r.drained()
	if again, err := s.Job(t.Context(), j.ID); err != nil || !again.FinishedAt.Equal(j.FinishedAt) || again.Progress != p {
		t.Errorf("after all copies have run: %+v, %v, want it as it was", again, err)
	}
	m := r.fake.Meter()
	if m.Refetched() != 0 || m.OverLimit() != 0 || m.Refused() != 0 {
		t.Errorf("the fake's meter: %d refetched, %d over the limit, %d refused; want none", m.Refetched(), m.OverLimit(), m.Refused())
	}
}
