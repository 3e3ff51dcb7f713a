package workers

import (
	"sync"
	"time"
)

// recollection is what a process remembers of a job between its slices. To lose
// it costs nothing but a slower judgement of faults.
type recollection struct {
	good   string    // id of a message that was fetched lately; "": ask the store
	streak int       // faults of items since something last worked
	worked time.Time // when something last did
	proven time.Time // when a probe last worked that was made after faults

	// Of the listing, since it last brought a new id:
	frontier string          // the last of the new ids; "": not known
	tokens   map[string]bool // that were followed
	barren   int64           // pages
	troubles int             // times that its tokens led nowhere
}

// memory holds the recollections of the jobs that this process runs. It is safe
// for concurrent use.
type memory struct {
	mu   sync.Mutex
	jobs map[string]recollection
}

func newMemory() *memory {
	return &memory{jobs: make(map[string]recollection)}
}

func (m *memory) get(job string) recollection {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.jobs[job]
}

func (m *memory) set(job string, r recollection) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.jobs[job] = r
}

func (m *memory) forget(job string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.jobs, job)
}
