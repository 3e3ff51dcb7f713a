package workers

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"headroom/jobs"
	"headroom/quota"
)

// memMailbox is a mailbox of n messages, m0 and so on, listed perPage a page.
type memMailbox struct {
	n, perPage int
	promised   int           // by the profile; n if zero
	loop       string        // a page token whose page names itself as the next
	latency    time.Duration // of a call
	slow       time.Duration // of a get, where not that
	// fault decides on a call ("profile", "list TOKEN", "get ID"), the nth of
	// its name, from 1; nil: all succeed.
	fault func(call string, nth int) error
	// full decides on a call by how many are in flight, with mu held; nil: all
	// may be.
	full func(inFlight int) error

	mu       sync.Mutex
	calls    []string
	times    map[string]int
	inFlight int
	most     int
}

// Mailbox makes a mailbox the whole of Google.
func (b *memMailbox) Mailbox(context.Context, jobs.Account, quota.Lane, time.Duration) (Mailbox, error) {
	return b, nil
}

func (b *memMailbox) call(ctx context.Context, name string) error {
	b.mu.Lock()
	if b.times == nil {
		b.times = map[string]int{}
	}
	b.times[name]++
	nth := b.times[name]
	b.calls = append(b.calls, name)
	b.inFlight++
	b.most = max(b.most, b.inFlight)
	var tooMany error
	if b.full != nil {
		tooMany = b.full(b.inFlight)
	}
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.inFlight--
		b.mu.Unlock()
	}()
	if tooMany != nil {
		return tooMany
	}
	latency := b.latency
	if strings.HasPrefix(name, "get") {
		latency = cmp.Or(b.slow, latency)
	}
	if latency > 0 {
		timer := time.NewTimer(latency)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if b.fault != nil {
		return b.fault(name, nth)
	}
	return ctx.Err()
}

// made returns how often a call was made.
func (b *memMailbox) made(call string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.times[call]
}

func (b *memMailbox) Profile(ctx context.Context) (jobs.Profile, error) {
	return jobs.Profile{Messages: int64(cmp.Or(b.promised, b.n)), HistoryID: 77}, b.call(ctx, "profile")
}

func (b *memMailbox) List(ctx context.Context, search jobs.Search, token string) (jobs.Page, error) {
	if err := b.call(ctx, "list "+token); err != nil {
		return jobs.Page{}, err
	}
	from, _ := strconv.Atoi(token)
	if _, before, ok := strings.Cut(search.Query, "before:"); ok {
		seconds, _ := strconv.ParseInt(before, 10, 64)
		for !b.date(from).Before(time.Unix(seconds, 0)) {
			from++
		}
	}
	to := min(from+cmp.Or(b.perPage, 500), b.n)
	page := jobs.Page{}
	for i := from; i < to; i++ {
		page.IDs = append(page.IDs, "m"+strconv.Itoa(i))
	}
	if to < b.n {
		page.Next = strconv.Itoa(to)
	}
	if token != "" && token == b.loop {
		page.Next = token
	}
	return page, nil
}

// date is when the i-th message was received: a day after the one behind it.
func (b *memMailbox) date(i int) time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, b.n-i)
}

func (b *memMailbox) fetched(id string) jobs.Fetched {
	i, _ := strconv.Atoi(id[1:])
	return jobs.Fetched{ID: id, HistoryID: 5, Labels: []string{"INBOX"}, InternalDate: b.date(i),
		SizeEstimate: int64(len(b.raw(id))), Subject: "about " + id}
}

func (b *memMailbox) raw(id string) string { return "Subject: about " + id + "\r\n\r\nbody\r\n" }

func (b *memMailbox) Fetch(ctx context.Context, id string, raw io.Writer) (jobs.Fetched, error) {
	if err := b.call(ctx, "get "+id); err != nil {
		return jobs.Fetched{}, err
	}
	_, err := io.WriteString(raw, b.raw(id))
	return b.fetched(id), err
}

func (*memMailbox) Full(context.Context, string) (jobs.Fetched, error) {
	return jobs.Fetched{}, errNoSync
}

func (*memMailbox) Attachment(context.Context, string, jobs.Attachment, io.Writer) (int64, error) {
	return 0, errNoSync
}

func (*memMailbox) Thread(context.Context, string, jobs.Format) ([]jobs.Fetched, error) {
	return nil, errNoSync
}

func (b *memMailbox) Metadata(ctx context.Context, id string) (jobs.Fetched, error) {
	return b.fetched(id), b.call(ctx, "metadata "+id)
}

// Live sync is tested with the real store and a fake Google, in internal/e2e.
var errNoSync = errors.New("there is no live sync in memory")

func (*memMailbox) History(context.Context, uint64, string) (jobs.HistoryPage, error) {
	return jobs.HistoryPage{}, errNoSync
}

func (*memMailbox) ListAll(context.Context, string, string) (jobs.Page, error) {
	return jobs.Page{}, errNoSync
}

func (*memMailbox) Labels(context.Context) ([]jobs.Label, error) { return nil, errNoSync }
