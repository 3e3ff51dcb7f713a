package workers

import "sync"

// recollection is what a process remembers of a job between its slices. To lose
// it costs nothing but a slower judgement of faults.
type recollection struct {
	good   string // id of a message that was fetched lately; "": ask the store
	streak int    // faults of items since something last worked
}

// memory holds the recollections of the jobs that this process runs, and the
// gates of their accounts. It is safe for concurrent use.
type memory struct {
	mu    sync.Mutex
	jobs  map[string]recollection
	gates map[string]*gate
}

func newMemory() *memory {
	return &memory{jobs: make(map[string]recollection), gates: make(map[string]*gate)}
}

// gate returns the gate of an account, made for at most so many calls at once.
func (m *memory) gate(account string, most int) *gate {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.gates[account]
	if g == nil {
		g = newGate(most)
		m.gates[account] = g
	}
	return g
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
