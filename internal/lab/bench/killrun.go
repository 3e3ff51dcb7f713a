package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hibiken/asynq"
	"golang.org/x/sync/errgroup"

	"headroom/internal/lab/localredis"
	"headroom/jobs"
)

// A killRun runs backfills with workers that are processes of their own, kills the
// workers one after the other, and finally kills Redis.
type killRun struct {
	siteSettings
	mailboxes, messages, workers, kills int
	every                               time.Duration
	redis                               *localredis.Server
	figures                             *KillsFigures
}

func (m killRun) measure(ctx context.Context, o Options) error {
	accounts, fill := mailboxes(m.mailboxes, m.messages)
	return m.run(ctx, o, fill, func(ctx context.Context, s *site) error {
		ids, err := s.startAll(ctx, accounts)
		if err != nil {
			return err
		}
		workers, err := newWorkerSet(s.Rig, m.redisURL)
		if err != nil {
			return err
		}
		group, together := errgroup.WithContext(ctx)
		under, ended := context.WithCancel(together) // while the backfills are under way
		for range m.workers {
			group.Go(func() error { return workers.keepOne(under) })
		}
		group.Go(func() error { return m.killAll(under, workers) })
		seen, done := &progressWatch{all: map[string]jobs.Job{}}, []jobs.Job(nil)
		group.Go(func() (err error) {
			defer ended()
			done, err = s.untilEnded(together, ids, func(_ time.Time, all []jobs.Job) {
				stored := seen.look(all)
				o.progress(float64(stored)/float64(m.mailboxes*m.messages), "%d workers killed, %d of %d messages stored",
					workers.killed.Load(), stored, m.mailboxes*m.messages)
			})
			return err
		})
		if err := group.Wait(); err != nil {
			return err
		}
		m.figures.Kills, m.figures.WentDown = workers.killed.Load(), seen.wentDown
		return m.report(ctx, s, done)
	})
}

// killAll kills a worker at each tick and Redis at the end, while the backfills run.
func (m killRun) killAll(under context.Context, workers *workerSet) error {
	tick := time.NewTicker(m.every)
	defer tick.Stop()
	for n := range m.kills + 1 {
		select {
		case <-under.Done():
			return nil
		case <-tick.C:
		}
		if n < m.kills {
			workers.killOne()
		}
	}
	m.redis.Kill()
	m.figures.RedisKills++
	select {
	case <-under.Done(): // the store needs no Redis; but the figures do
	case <-time.After(redisAway):
	}
	return m.redis.Restart(context.WithoutCancel(under))
}

// progressWatch checks that progress never goes down.
type progressWatch struct {
	all      map[string]jobs.Job // as last seen
	wentDown int64
}

// look compares jobs with how they were, and returns how many messages they have
// stored.
func (w *progressWatch) look(all []jobs.Job) (stored int64) {
	for _, job := range all {
		last, now := w.all[job.ID].Progress, job.Progress
		if now.Done() < last.Done() || now.Stored < last.Stored || now.Listed < last.Listed {
			w.wentDown++
		}
		w.all[job.ID] = job
		stored += now.Stored
	}
	return stored
}

// report compares the store with the mailboxes, and asks the fake and Asynq.
func (m killRun) report(ctx context.Context, s *site, done []jobs.Job) error {
	f, meter := m.figures, s.Fake.Meter()
	f.Complete = true
	for _, job := range done {
		f.states = append(f.states, job.State)
		f.Doubled += max(0, job.Progress.Done()-int64(m.messages))
		f.TookOver += job.Epoch - 1
		if err := m.compare(ctx, s, job.Account); err != nil {
			return err
		}
	}
	f.Messages = int64(m.mailboxes * m.messages)
	f.Refetched = meter.Refetched()
	f.Refetch = round(float64(f.Refetched) / float64(f.Messages))
	f.Refused, f.Over = meter.Refused(), meter.OverLimit()
	return m.countArchived(s)
}

// compare adds what the store has of a mailbox to the figures.
func (m killRun) compare(ctx context.Context, s *site, account string) error {
	want, store := map[string]string{}, s.process.Store()
	for _, message := range s.Fake.Mailbox(account).Messages() {
		want[message.ID] = message.SHA256
	}
	for after := ""; ; {
		page, err := store.Messages(ctx, account, after, 500)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		for _, message := range page {
			after = message.ID
			sum, there := want[message.ID]
			if delete(want, message.ID); !there {
				m.figures.Doubled++
				continue
			}
			if message.SHA256 == "" {
				m.figures.Complete = false
				continue
			}
			m.figures.Stored++
			hash, err := hashOf(ctx, s, message)
			if err != nil {
				return err
			}
			if hash == sum {
				m.figures.Identical++
			}
		}
	}
	m.figures.Complete = m.figures.Complete && len(want) == 0
	return nil
}

func hashOf(ctx context.Context, s *site, message jobs.Message) (string, error) {
	blob, err := s.process.Blobs().Open(ctx, message.SHA256)
	if err != nil {
		return "", err
	}
	defer blob.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, blob); err != nil {
		return "", fmt.Errorf("read message %s of %s: %w", message.ID, message.Account, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// countArchived counts the archived tasks of all queues.
func (m killRun) countArchived(s *site) error {
	options, err := asynq.ParseRedisURI(m.redisURL)
	if err != nil {
		return err
	}
	inspector := asynq.NewInspector(options)
	defer inspector.Close()
	queues, err := inspector.Queues()
	if err != nil {
		return fmt.Errorf("list the queues: %w", err)
	}
	for _, name := range queues {
		if !strings.HasPrefix(name, s.Config.Redis.QueuePrefix) {
			continue
		}
		info, err := inspector.GetQueueInfo(name)
		if err != nil {
			return fmt.Errorf("look at queue %s: %w", name, err)
		}
		m.figures.Archived += int64(info.Archived)
	}
	return nil
}
