package workers

import "sync"

// A jobMemo is what a process remembers of a job between its slices. To lose it costs
// only a slower decision about faults.
type jobMemo struct {
	breaker breaker
	listing listingMemo
}

// A listingMemo is what is known about a listing since it last brought a new id.
type listingMemo struct {
	oldest     string          // the last of the new ids; "": not known
	tokens     map[string]bool // that were followed
	emptyPages int64
	restarts   int // times that its tokens led nowhere
}

// A jobCache holds the memos of the jobs that this process runs. It is safe for
// concurrent use.
type jobCache struct {
	mu   sync.Mutex
	jobs map[string]jobMemo
}

func newJobCache() *jobCache { return &jobCache{jobs: make(map[string]jobMemo)} }

func (c *jobCache) get(job string) jobMemo {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jobs[job]
}

func (c *jobCache) set(job string, m jobMemo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jobs[job] = m
}

func (c *jobCache) forget(job string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.jobs, job)
}
