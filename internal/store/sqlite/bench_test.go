package sqlite_test

import (
	"testing"

	"headroom/jobs"
)

// BenchmarkCommit stores batches of ten messages, as a worker does, in a job
// that has 100,000 ids.
func BenchmarkCommit(b *testing.B) {
	const size = 10
	s, job := claimed(b)
	n := max(100_000, size*b.N)
	all := ids(n)
	for i := 0; i < n; i += 500 {
		must[jobs.Job](b)(s.AddListed(b.Context(), job.Ref(), jobs.Page{IDs: all[i:min(i+500, n)]}))
	}
	b.ResetTimer()
	for i := range b.N {
		var results []jobs.Result
		for _, id := range all[i*size : (i+1)*size] {
			results = append(results, stored(id))
		}
		must[jobs.Job](b)(s.Commit(b.Context(), job.Ref(), results))
	}
}

// BenchmarkNextItems asks for a slice's next ids when all but the last of
// 100,000 are done.
func BenchmarkNextItems(b *testing.B) {
	const n = 100_000
	s, job := claimed(b)
	all := ids(n)
	for i := 0; i < n; i += 500 {
		page := all[i : i+500]
		must[jobs.Job](b)(s.AddListed(b.Context(), job.Ref(), jobs.Page{IDs: page}))
		var results []jobs.Result
		for _, id := range page {
			if i+500 < n {
				results = append(results, jobs.Result{ID: id, Outcome: jobs.ItemGone})
			}
		}
		must[jobs.Job](b)(s.Commit(b.Context(), job.Ref(), results))
	}
	b.ResetTimer()
	for range b.N {
		if got := must[[]jobs.Item](b)(s.NextItems(b.Context(), job.Ref(), 0, 50)); len(got) != 50 {
			b.Fatalf("NextItems returns %d items", len(got))
		}
	}
}
