package web

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"go.uber.org/zap"

	"headroom/internal/term"
	"headroom/jobs"
)

// indexJobs is how many jobs the index shows, the newest first.
const indexJobs = 50

// sourceTimeout bounds the query of each source of the index page, so that one that
// hangs does not delay the others.
const sourceTimeout = 2 * time.Second

//go:embed index.html
var indexSource string

var indexPage = template.Must(template.New("index").Funcs(template.FuncMap{
	"bytes": func(n int64) string { return humanize.IBytes(uint64(max(0, n))) },
	"count": humanize.Comma,
	"age":   func(t time.Time) string { return humanize.Time(t) },
	"clean": term.Clean,
}).Parse(indexSource))

// indexData is what index.html shows.
type indexData struct {
	Version string
	Ready   readiness
	Lanes   []laneRow
	NoLanes string // why the lanes are missing
	Jobs    []jobs.Job
	NoJobs  string
	Total   int
}

type laneRow struct {
	Name string
	queueSize
}

func (s *Server) index(w http.ResponseWriter, r *http.Request) {
	var page bytes.Buffer
	if err := indexPage.Execute(&page, s.indexData(r.Context())); err != nil {
		s.opts.Log.Error("index page", zap.Error(err))
		http.Error(w, "the page could not be made; the log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	_, _ = page.WriteTo(w) // the client has gone
}

// indexData collects what is available, because the page is needed most when something
// is wrong. It queries all sources at once.
func (s *Server) indexData(ctx context.Context) indexData {
	d := indexData{Version: s.opts.Version}
	var wg sync.WaitGroup
	wg.Go(func() { d.Ready = s.check(ctx) })
	wg.Go(func() { d.Lanes, d.NoLanes = s.laneRows(ctx) })
	wg.Go(func() { d.Jobs, d.Total, d.NoJobs = s.newest(ctx) })
	wg.Wait()
	return d
}

func (s *Server) laneRows(ctx context.Context) (rows []laneRow, why string) {
	names := make([]string, len(s.opts.Lanes))
	for i, l := range s.opts.Lanes {
		names[i] = l.Queue
	}
	sizes, err := within(ctx, func(ctx context.Context) ([]queueSize, error) { return readQueues(ctx, s.opts.Redis, names) })
	if err != nil {
		return nil, unanswered("Redis", err)
	}
	for i, size := range sizes {
		rows = append(rows, laneRow{s.opts.Lanes[i].Name, size})
	}
	return rows, ""
}

func (s *Server) newest(ctx context.Context) (newest []jobs.Job, total int, why string) {
	type found struct {
		jobs  []jobs.Job
		total int
	}
	all, err := within(ctx, func(ctx context.Context) (f found, err error) {
		f.jobs, f.total, err = s.opts.JobsFunc(ctx, indexJobs)
		return f, err
	})
	if err != nil {
		return nil, 0, unanswered("the store", err)
	}
	return all.jobs, all.total, ""
}

// within queries a source, and waits at most sourceTimeout for it, whether or not the
// source respects its context.
func within[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		value, err := ask(ctx)
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// unanswered explains why a source returned nothing.
func unanswered(source string, err error) string {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Sprintf("%s did not answer within %s", source, sourceTimeout)
	}
	return source + ": " + err.Error()
}
